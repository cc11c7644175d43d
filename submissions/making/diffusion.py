"""Diffusion pipelines as generators of pictures: one seed, several captions."""

from __future__ import annotations

import functools
import hashlib
import inspect
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cir_datasets.errors import ConstructionError, missing_extra
from submissions.encoders.pretrained import NO_FOREIGN_CODE, device_of, libraries, update_with
from submissions.errors import SubmissionError

INDEX = "model_index.json"
"""What a folder with a pipeline of diffusers holds."""
_KEPT = ("*.json", "*.txt", "*.model", "*.safetensors")
_DTYPES = ("auto", "float32", "float16", "bfloat16")


@dataclass(frozen=True)
class DiffusionGenerator:
    """A pipeline of diffusers that draws a picture of a caption (`cir_datasets`' `Generator`).

    Each caption of a triplet begins with the same noise. The same machine, device, dtype and versions give
    the same pictures; others give others.

    Args:
        model: a folder that `save_pretrained` wrote, or a name on the Hub.
        commit: on the Hub, or the sha256 (hex) of a folder.
        steps: of the denoising; None is the pipeline's own number.
        guidance: how much the caption counts; None is the pipeline's own number.
        size: width and height in pixels; None is the pipeline's own.
        device: where it runs.
        dtype: its numbers.
    """

    model: str
    commit: str
    steps: int | None = None
    guidance: float | None = None
    size: int | None = None
    device: str = "cpu"
    dtype: str = "float32"

    @property
    def identity(self) -> Mapping[str, Any]:
        """What the pictures depend on."""
        import diffusers
        import torch

        folder = Path(self.model).is_dir()
        return {
            "generator": "diffusers",
            "model": Path(self.model).name if folder else self.model,
            "commit": self.commit,
            "steps": self.steps,
            "guidance": self.guidance,
            "size": self.size,
            "device": self.device,
            "dtype": self.dtype,
            "versions": {"diffusers": diffusers.__version__, "torch": torch.__version__},
        }

    def draw(self, captions: Sequence[str], seed: int) -> list[bytes]:
        """A picture of each caption, all from the same noise, as the bytes of PNG files.

        Raises:
            ConstructionError: the pipeline's own filter keeps a picture back, or it is of one colour.
            SubmissionError: the pipeline cannot be loaded, or there is no room for it.
        """
        import torch

        pipeline = _loaded(self.model, self.commit, self.device, self.dtype)
        given = {"num_inference_steps": self.steps, "guidance_scale": self.guidance}
        given |= {"height": self.size, "width": self.size}
        chosen = {name: value for name, value in given.items() if value is not None}
        files = []
        for caption in captions:
            # Noise of the CPU: the same for every device.
            noise = torch.Generator("cpu").manual_seed(seed)
            try:
                out = pipeline(prompt=caption, generator=noise, output_type="pil", **chosen)
            except torch.OutOfMemoryError as error:
                raise SubmissionError(
                    f"{self.model}: no memory left on {self.device}. Fix: use dtype: float16, a smaller "
                    "size, or another --device. What was drawn is kept."
                ) from error
            image = out.images[0].convert("RGB")
            if any(getattr(out, "nsfw_content_detected", None) or ()):
                raise ConstructionError(f"{caption!r}: the pipeline's filter keeps its picture back.")
            if all(low == high for low, high in image.getextrema()):
                raise ConstructionError(f"{caption!r}: its picture is of one colour.")
            buffer = io.BytesIO()
            image.save(buffer, "PNG")
            files.append(buffer.getvalue())
        return files


def load_diffusion(
    model: str,
    *,
    revision: str | None = None,
    steps: int | None = None,
    guidance: float | None = None,
    size: int | None = None,
    device: str = "auto",
    dtype: str = "auto",
) -> DiffusionGenerator:
    """A generator from a pipeline's folder or name; its weights are loaded when the first picture is drawn.

    Args:
        model: a folder, or a name on the Hub.
        revision: commit, branch or tag on the Hub.
        steps: of the denoising, 1 or more.
        guidance: how much the caption counts, 0 or more.
        size: width and height in pixels, a multiple of 8.
        device: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`.
        dtype: `float32`, `float16`, `bfloat16`; `auto` is float16 on a GPU and float32 elsewhere.

    Raises:
        MissingExtraError: diffusers is not installed.
        SubmissionError: `model` is not a pipeline, or a number is out of range.
    """
    libraries("a diffusion pipeline")
    try:
        import diffusers  # noqa: F401
    except ImportError as error:
        raise missing_extra("a diffusion pipeline", "diffusers", "diffusion") from error
    if dtype not in _DTYPES:
        raise SubmissionError(f"dtype {dtype!r} is not known. Fix: use one of {', '.join(_DTYPES)}.")
    low = (steps is not None and steps < 1) or (guidance is not None and guidance < 0)
    if low or (size is not None and (size < 8 or size % 8)):
        raise SubmissionError(
            f"steps={steps}, guidance={guidance}, size={size}; steps are 1 or more, guidance 0 or more, "
            "and the size is a multiple of 8. Fix: choose them so."
        )
    where = str(device_of(device, SubmissionError))
    if dtype == "auto":
        dtype = "float32" if where == "cpu" else "float16"
    folder = Path(model).expanduser()
    if folder.is_dir():
        source, commit = str(folder.absolute()), _folder_sha256(folder)
    elif model.startswith((".", "~", "/")) or model.count("/") > 1:
        raise SubmissionError(
            f"{model}: no such folder. Fix: name one with {INDEX}, or a pipeline on the Hub."
        )
    else:
        source, commit = model, _commit(model, revision)
    return DiffusionGenerator(source, commit, steps, guidance, size, where, dtype)


def _folder_sha256(folder: Path) -> str:
    if not (folder / INDEX).is_file():
        raise SubmissionError(
            f"{folder}: no {INDEX} is in it. Fix: name a folder that a pipeline's save_pretrained wrote."
        )
    whole = hashlib.sha256()
    for path in sorted({path for pattern in _KEPT for path in folder.rglob(pattern)}):
        whole.update(f"\0{path.relative_to(folder).as_posix()}\0".encode())
        update_with(whole, path)
    return whole.hexdigest()


def _commit(model: str, revision: str | None) -> str:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        # The folder of a snapshot has its commit for a name.
        return Path(hf_hub_download(model, INDEX, revision=revision)).parent.name
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise SubmissionError(
            f"{model}: no pipeline of that name can be had: {reason} Fix: check name and revision, and that "
            "the Hub can be reached; or name a folder."
        ) from error


@functools.lru_cache(maxsize=1)
def _loaded(model: str, commit: str, device: str, dtype: str) -> Any:
    """The pipeline, once a process."""
    import diffusers
    import torch
    from safetensors import SafetensorError

    diffusers.utils.logging.disable_progress_bar()
    revision = {} if Path(model).is_dir() else {"revision": commit}
    try:
        load: Any = diffusers.DiffusionPipeline.from_pretrained
        pipeline = load(
            model, dtype=getattr(torch, dtype), use_safetensors=True, **revision, **NO_FOREIGN_CODE
        )
        pipeline.to(device)
    except (
        OSError,
        ValueError,
        RuntimeError,
        LookupError,
        TypeError,
        AttributeError,
        ImportError,
        SafetensorError,
    ) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SubmissionError(
            f"{model}: cannot be loaded: {reason} Fix: get it again, with safetensors; pipelines that need "
            "code of their own repository are not run here."
        ) from error
    if "prompt" not in inspect.signature(pipeline.__call__).parameters:
        raise SubmissionError(f"{model}: it draws without words. Fix: name a pipeline that takes a prompt.")
    pipeline.set_progress_bar_config(disable=True)
    return pipeline
