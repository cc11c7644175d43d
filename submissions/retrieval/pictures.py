"""The pictures of a gallery by place: from a user's folder, or, of shapes, drawn when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from PIL.Image import Image

    from cir_datasets.benchmark import Benchmark


class Pictures(Protocol):
    """Images by id and place. Can be pickled: other processes open pictures too."""

    @property
    def name(self) -> str:
        """Whose pictures they are: a benchmark's id, or what a person calls them."""

    @property
    def ids(self) -> Sequence[str]:
        """Image ids, in the manifest's order."""

    @property
    def digest(self) -> str:
        """sha256 (hex) over the ids and what is known of each picture's content."""

    def missing(self) -> list[str]:
        """Ids whose picture is absent or cannot be read, in order; files are looked at, not decoded."""

    def open(self, place: int) -> Image:
        """The picture at a place of `ids`, RGB.

        Raises:
            MissingImagesError: it is absent or cannot be read.
        """


def pictures_of(
    benchmark: Benchmark, *, images: str | Path | None = None, ids: Sequence[str] | None = None
) -> Pictures:
    """The pictures of a benchmark's gallery.

    Args:
        benchmark: whose pictures.
        images: folder that holds them in the publisher's layout, or its parent; None looks below `CIR_IMAGES`,
            and draws the pictures of shapes.
        ids: other images of that benchmark than its gallery (references, say); None is the gallery.

    Raises:
        SourceError: the folder does not exist, none was given, or the gallery's list is not at hand.
    """
    raise NotImplementedError
