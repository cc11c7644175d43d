"""An encoder by name."""

from __future__ import annotations

from pathlib import Path

from submissions.encoders.protocol import NO_ENCODER, SHAPES_ENCODER, SHAPES_FOLDER, Encoder
from submissions.errors import EncoderError


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
        EncoderError: the name is `pixels` or `none`; there is no such folder or model, no weights or
            tokenizer in it, a family or device that is not known, or `threads` is below 1.
        MissingExtraError: torch or transformers is not installed.
    """
    check_encoder_name(name)
    from submissions.encoders.huggingface import HuggingFaceEncoder

    if str(name) == SHAPES_ENCODER:
        return HuggingFaceEncoder(
            SHAPES_FOLDER, label=SHAPES_ENCODER, device=device, dtype=dtype, threads=threads
        )
    return HuggingFaceEncoder(name, revision=revision, device=device, dtype=dtype, threads=threads)


def check_encoder_name(name: object, instead: str = "") -> None:
    """Refuse `pixels`, whose baselines are methods, and `none`, which says that there is no encoder.

    Args:
        name: what is given for an encoder.
        instead: a further fix, where the caller has one.

    Raises:
        EncoderError: it is one of the two.

    Example:
        >>> check_encoder_name("shapes")
    """
    if isinstance(name, str) and name in ("pixels", NO_ENCODER):
        raise EncoderError(
            f"there is no encoder {name!r}. Fix: name one (shapes, a folder in Hugging Face format, or a "
            f"model on the Hub){instead}."
        )
