"""Dual encoders in Hugging Face format, or OpenCLIP's, from a folder or the Hub.

Vectors are the same, byte for byte, for the same batches, device, dtype and number of threads on one machine.
Another batch size, or other texts beside a text, moves them by rounding: about 1e-6 in float32.
Code of a model's repository is never run, nor offered to be run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from submissions.encoders.families import FAMILIES, ModelFamily
from submissions.encoders.model_files import ModelFiles, loading_explained, model_files
from submissions.encoders.openclip import load_open_clip
from submissions.encoders.pretrained import NO_FOREIGN_CODE, device_of, libraries, quiet
from submissions.encoders.protocol import DTYPES, Identity, Prepared, Vectors
from submissions.errors import EncoderError
from submissions.truncation import report_cuts

if TYPE_CHECKING:
    from PIL.Image import Image

_TEXTS_AT_ONCE = 256
_SMALLEST_SHARE = 0.5
_MOST_SIDE = 4096
"""Of the words that a model knows, those that its tokenizer must know; without files it knows a handful."""


@dataclass(frozen=True)
class Preparation:
    """Resizes and crops images as the model's image processor says; can be pickled.

    Args:
        processor: the image processor.
        raw: leave rescaling and normalising to the device, and pass bytes on: a quarter of the memory.
    """

    processor: Any
    raw: bool

    def __call__(self, images: Sequence[Image]) -> Prepared:
        """Images to arrays, by the names that the model gives them."""
        later = {"do_rescale": False, "do_normalize": False} if self.raw else {}
        made = self.processor(images=list(images), return_tensors="np", **later)
        return {name: np.asarray(made[name]) for name in made}


class HuggingFaceEncoder:
    """An encoder of a family that is known.

    Args:
        name: a folder in Hugging Face format, or a model's name on the Hub.
        label: what the identity calls it; None is the name, or the folder's name.
        revision: commit, branch or tag on the Hub.
        device: see `load_encoder`.
        dtype: see `load_encoder`.
        threads: see `load_encoder`.

    Raises:
        EncoderError: see `load_encoder`.
        MissingExtraError: torch or transformers is not installed.
    """

    def __init__(
        self,
        name: str | Path,
        *,
        label: str | None = None,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "float32",
        threads: int | None = None,
    ) -> None:
        """See the class."""
        torch, transformers = libraries("an encoder")
        self.device = device_of(device, EncoderError)
        if dtype == "auto":
            dtype = "float16" if self.device.type == "cuda" else "float32"
        if dtype not in DTYPES:
            known = ", ".join(("auto", *DTYPES))
            raise EncoderError(f"dtype {dtype!r} is not known. Fix: use one of {known}.")
        if threads is not None:
            if threads < 1:
                raise EncoderError(f"threads={threads}. Fix: use 1 or more, or None for PyTorch's choice.")
            torch.set_num_threads(threads)
        with loading_explained(name), quiet(transformers):
            files = model_files(name, revision)
            loaded = _loaded(files, getattr(torch, dtype))
        _check_complete(str(name), loaded.report)
        config = loaded.model.config
        self.max_tokens = 0
        if loaded.family.text is not None:
            _check_tokenizer(str(name), loaded.tokenizer, config.get_text_config().vocab_size)
            self.max_tokens = int(config.get_text_config().max_position_embeddings)
        self.family = loaded.family
        self.tokenizer, self.image_processor = loaded.tokenizer, loaded.image_processor
        self.model = loaded.model.to(self.device).eval().requires_grad_(False)
        # Patches of SigLIP 2 are not images any more.
        self.prepare = Preparation(self.image_processor, raw=self.family.name != "siglip2")
        self._torch = torch
        self.identity = Identity(
            model=label or files.name,
            revision=files.fingerprint(),
            family=self.family.name,
            preprocessing=_preprocessing_hash(self.image_processor, self.tokenizer, self.max_tokens),
            dtype=dtype,
            dimensions=self.family.dimensions(config),
        )

        with loading_explained(name):
            _check_sides(loaded.image_processor)
            from PIL import Image

            # Whatever else its files say wrongly shows here, and not at the first of 100,000 images.
            self.encode_images([Image.new("RGB", (32, 32))])

    def encode_images(self, images: Sequence[Image]) -> Vectors:
        """Vectors of RGB images, shape (n, dimensions), float32, rows of length 1."""
        if not images:
            return self._none()
        return self.encode_prepared(self.prepare(images))

    def encode_prepared(self, prepared: Mapping[str, Any]) -> Vectors:
        """Vectors of what `prepare` made; arrays or tensors."""
        torch = self._torch
        with torch.inference_mode():
            inputs = {
                name: torch.as_tensor(values).to(self.device, non_blocking=True)
                for name, values in prepared.items()
            }
            inputs["pixel_values"] = self._normalised(inputs["pixel_values"]).to(self.model.dtype)
            return self._of_length_1(self.family.image(self.model, inputs))

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts, shape (n, dimensions), float32, rows of length 1.

        Texts longer than the model's limit are cut off there.

        Raises:
            EncoderError: the model knows images alone.

        Warns:
            TruncationWarning: some were; the message counts them, of a run all together.
        """
        if not len(texts):
            return self._none()
        features = self.family.text
        if features is None:
            raise EncoderError(
                f"{self.identity.model} ({self.family.name}) knows images alone, not texts. "
                "Fix: use an encoder of images and texts."
            )
        tokens = self.tokenizer(list(texts), truncation=False, padding=False, verbose=False)["input_ids"]
        cut = [text for text, own in zip(texts, tokens, strict=True) if len(own) > self.max_tokens]
        report_cuts(cut, texts, limit=self.max_tokens, model=self.identity.model)
        blocks = [list(texts[at : at + _TEXTS_AT_ONCE]) for at in range(0, len(texts), _TEXTS_AT_ONCE)]
        return np.concatenate([self._texts(block, features) for block in blocks])

    def _texts(self, texts: list[str], features: Callable[[Any, Mapping[str, Any]], Any]) -> Vectors:
        torch = self._torch
        fully = self.family.pads_fully
        tokens = self.tokenizer(
            texts,
            truncation=True,
            max_length=self.max_tokens,
            padding="max_length" if fully else True,
            return_attention_mask=not fully,
            return_token_type_ids=False,
            return_tensors="pt",
        )
        with torch.inference_mode():
            inputs = {name: values.to(self.device) for name, values in tokens.items()}
            return self._of_length_1(features(self.model, inputs))

    def _normalised(self, pixels: Any) -> Any:
        """Pixels as the image processor would have rescaled and normalised them."""
        torch, processor = self._torch, self.image_processor
        if not self.prepare.raw:
            return pixels
        # In place: each new array of this size costs fresh memory pages, which may take longer than the sums.
        values = pixels.float()
        if processor.do_rescale:
            values.mul_(processor.rescale_factor)
        if processor.do_normalize:
            mean, deviation = (
                torch.tensor(one, device=self.device, dtype=torch.float32).reshape(1, -1, 1, 1)
                for one in (processor.image_mean, processor.image_std)
            )
            values.sub_(mean).div_(deviation)
        return values

    def _of_length_1(self, features: Any) -> Vectors:
        features = self._torch.nn.functional.normalize(features.float(), dim=-1)
        vectors: Vectors = features.cpu().numpy()
        return vectors

    def _none(self) -> Vectors:
        return np.empty((0, self.identity.dimensions), dtype=np.float32)


@dataclass(frozen=True)
class _Loaded:
    """A model and what goes with it."""

    model: Any
    family: ModelFamily
    tokenizer: Any
    image_processor: Any
    report: Mapping[str, Any]


def _loaded(files: ModelFiles, dtype: Any) -> _Loaded:
    """Load what the files hold."""
    import transformers

    from submissions.encoders.magiclens import register

    source = files.source
    if files.open_clip:
        model, image_processor, report = load_open_clip(Path(source), dtype)
        return _Loaded(model, FAMILIES["clip"], _tokenizer(files), image_processor, report)
    register()
    where = {"revision": files.revision, **NO_FOREIGN_CODE}
    config = transformers.AutoConfig.from_pretrained(source, **where)
    family = _family(source, config)
    model, report = getattr(transformers, family.model_class).from_pretrained(
        source, **where, dtype=dtype, output_loading_info=True
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, **where) if family.text else None
    # Pillow's way on every machine: torchvision, where it is installed, gives other pixels.
    processors: Any = transformers.AutoImageProcessor
    image_processor = processors.from_pretrained(source, **where, backend="pil")
    return _Loaded(model, family, tokenizer, image_processor, report)


def _tokenizer(files: ModelFiles) -> Any:
    """The tokenizer that lies beside a model in OpenCLIP's format."""
    import transformers

    names = ("tokenizer.json", "vocab.json")
    if not any((Path(files.source) / name).is_file() for name in names):
        raise EncoderError(
            f"{files.name}: no tokenizer is in it ({' or '.join(names)}). Fix: put tokenizer.json and "
            "tokenizer_config.json of openai/clip-vit-base-patch32 into the folder: OpenCLIP has the same."
        )
    return transformers.AutoTokenizer.from_pretrained(files.source, **NO_FOREIGN_CODE)


def _family(source: str, config: Any) -> ModelFamily:
    family = FAMILIES.get(config.model_type)
    if family is None:
        raise EncoderError(
            f"{source}: models of type {config.model_type!r} are not dual encoders that are known. Fix: use "
            f"one of type {', '.join(FAMILIES)}, or write an encoder of your own (docs/encoders.md)."
        )
    return family


def _check_complete(source: str, report: Mapping[str, Any]) -> None:
    """Refuse a model some of whose weights were not in the files: they would be random."""
    lost = [name for name in report["missing_keys"] if not name.endswith("position_ids")]
    lost += [str(each[0]) for each in report.get("mismatched_keys") or ()]
    if lost:
        names = sorted(lost)
        raise EncoderError(
            f"{source}: {len(names):,} weights of the model are not in its files, {names[0]!r} for one. "
            "Fix: use a checkpoint of the whole dual encoder, not of one of its towers or of another task."
        )


def _check_tokenizer(source: str, tokenizer: Any, words: int) -> None:
    """Refuse the tokenizer that transformers makes where a model has none: to it all texts are alike."""
    if len(tokenizer) < _SMALLEST_SHARE * words:
        raise EncoderError(
            f"{source}: no tokenizer is in it, or one of another model: it knows {len(tokenizer):,} tokens, "
            f"the model {words:,}. Fix: put the model's tokenizer files beside its weights (tokenizer.json "
            "and tokenizer_config.json, as save_pretrained writes them)."
        )


def _check_sides(processor: Any) -> None:
    """Refuse a preprocessing that makes pictures of no size, or of one that fills the memory."""
    for setting in ("size", "crop_size", "pad_size"):
        sides = dict(getattr(processor, setting, None) or {})
        for name, side in sides.items():
            if side is not None and not (isinstance(side, int | float) and 1 <= side <= _MOST_SIDE):
                raise ValueError(
                    f"preprocessor_config.json: {setting} has {name}={side!r:.50}; it is 1 to {_MOST_SIDE}."
                )


def _preprocessing_hash(processor: Any, tokenizer: Any, max_tokens: int) -> str:
    """sha256 (hex) of the canonical JSON of image processor and tokenizer."""
    settings = {
        name: value for name, value in processor.to_dict().items() if not name.startswith(("_", "processor"))
    }
    settings["image_processor_type"] = type(processor).__name__.removesuffix("Pil")
    whole: dict[str, Any] = {"image": settings}
    if tokenizer is not None:
        whole |= {"text": _tokenizer_settings(tokenizer), "max_tokens": max_tokens}
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()


def _tokenizer_settings(tokenizer: Any) -> dict[str, Any]:
    settings = {"side": tokenizer.padding_side, "pad": tokenizer.pad_token}
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return {**settings, "class": type(tokenizer).__name__, "words": tokenizer.get_vocab()}
    inside = json.loads(backend.to_str())
    # Set by whoever called it last.
    inside.pop("truncation", None)
    inside.pop("padding", None)
    return {**settings, "inside": inside}
