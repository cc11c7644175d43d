"""Encoders: images and texts to vectors of one space, and what those vectors depend on.

An encoder is anything with `identity`, `encode_images` and `encode_texts`; `load_encoder` makes one of a
folder in Hugging Face format or of a name on the Hub (`huggingface`, `families`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

_SHA256 = re.compile(r"[0-9a-f]{64}")

Vectors: TypeAlias = NDArray[np.float32]
"""Shape (n, dimensions), float32, rows of length 1 (or of zeros: an image that is missing)."""

Prepared: TypeAlias = dict[str, NDArray[Any]]
"""What a model takes, by name: arrays whose first axis is the image."""

SHAPES_ENCODER = "shapes"
"""Name of the encoder that comes with this package."""

NO_ENCODER = "none"
"""What is written for an encoder where only baselines without weights are to run."""

DTYPES = ("float32", "float16", "bfloat16")
"""Types of an encoder's numbers; `auto` chooses one."""

SHAPES_FOLDER = Path(__file__).with_name("shapes_encoder")
"""Where it lies."""


@dataclass(frozen=True)
class Identity:
    """What vectors depend on; all of it (`key`) is part of the embedding store's key.

    Args:
        model: the name on the Hub, or a folder's name.
        revision: the commit on the Hub; of a folder the sha256 of its weight files; else "unknown".
        family: `clip`, `siglip`, `siglip2`, `blip_itm`, `magiclens`, or a name of your own.
        preprocessing: sha256 (hex) of what turns an image into pixels and a text into tokens.
        dtype: of the forward pass: `float32`, `float16` or `bfloat16`.
        dimensions: length of a vector.
    """

    model: str
    revision: str
    family: str
    preprocessing: str
    dtype: str
    dimensions: int

    def text(self) -> str:
        """One line for the `backbone` of a rank file.

        Example:
            >>> Identity("openai/clip-vit-base-patch32", "3d74acf9a28c", "clip", "", "float32", 512).text()
            'openai/clip-vit-base-patch32 (clip, 512 dimensions, float32, revision 3d74acf9a28c)'
        """
        return (
            f"{self.model} ({self.family}, {self.dimensions} dimensions, {self.dtype}, "
            f"revision {self.revision[:12]})"
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def key(self) -> dict[str, Any]:
        """What tells vectors apart, as JSON: of a folder's model its weights, whatever the folder is called.

        Example:
            >>> one = Identity("model", "3f" * 32, "clip", "9e" * 32, "float32", 512)
            >>> one.key() == Identity("copy", "3f" * 32, "clip", "9e" * 32, "float32", 512).key()
            True
        """
        whole = self.to_dict()
        if _SHA256.fullmatch(self.revision) and _SHA256.fullmatch(self.preprocessing):
            del whole["model"]
        return whole


@runtime_checkable
class Encoder(Protocol):
    """Turns images and texts into vectors of one space."""

    @property
    def identity(self) -> Identity:
        """What the vectors depend on."""

    def encode_images(self, images: Sequence[Image]) -> Vectors:
        """Vectors of RGB images, shape (n, dimensions), float32, rows of length 1."""

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts, shape (n, dimensions), float32, rows of length 1."""


@runtime_checkable
class PreparingEncoder(Encoder, Protocol):
    """An encoder whose work on pixels can be done by other processes, while the model is busy."""

    @property
    def prepare(self) -> Callable[[Sequence[Image]], Prepared]:
        """Images to what the model takes, by name; can be pickled, and holds no weights."""

    def encode_prepared(self, prepared: Mapping[str, Any]) -> Vectors:
        """Vectors of what `prepare` made; arrays or tensors."""


def is_shapes_encoder(identity: Identity) -> bool:
    """Whether vectors are of the encoder that comes with this package; a folder may have its name too."""
    return identity.model == SHAPES_ENCODER and identity.revision == _shapes_revision()


@functools.cache
def _shapes_revision() -> str:
    from submissions.encoders.model_files import folder_sha256

    return folder_sha256(SHAPES_FOLDER)
