"""An encoder by name."""

from __future__ import annotations

from pathlib import Path

from submissions.encoders.protocol import SHAPES_ENCODER, SHAPES_FOLDER, Encoder


def load_encoder(
    name: str | Path,
    *,
    revision: str | None = None,
    device: str = "auto",
    dtype: str = "float32",
    threads: int | None = None,
) -> Encoder:
    """Load an encoder.

    Args:
        name: `shapes` (the encoder that comes with this package), a folder in Hugging Face format, or a
            model's name on the Hub.
        revision: commit, branch or tag on the Hub; None is its main branch.
        device: `auto` (a GPU where there is one), `cpu`, `cuda`, `cuda:1`, `mps`.
        dtype: of the forward pass: `float32`, `float16`, `bfloat16`, or `auto` (float16 on a GPU of NVIDIA,
            else float32). Vectors are float32 in any case.
        threads: processor threads of the model; None leaves PyTorch's choice.

    Raises:
        EncoderError: no such folder or model, no weights or tokenizer in it, a family or device that is not
            known, or `threads` is below 1.
        MissingExtraError: torch or transformers is not installed.
    """
    from submissions.encoders.huggingface import HuggingFaceEncoder

    if str(name) == SHAPES_ENCODER:
        return HuggingFaceEncoder(
            SHAPES_FOLDER, label=SHAPES_ENCODER, device=device, dtype=dtype, threads=threads
        )
    return HuggingFaceEncoder(name, revision=revision, device=device, dtype=dtype, threads=threads)
