"""The images that subsets are drawn from: looked at, without copies, divided into splits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cir_datasets.builders.user_folder import listed_image
from cir_datasets.common.progress import done_in_parallel
from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.cirr.plan import IN_ALL
from cir_datasets.shapes import Draws
from cir_metrics.errors import CirError

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class Corpus:
    """Images and what is known of them.

    Args:
        name: what they are called.
        ids: of the images, in an order that does not depend on the machine.
        open: gives the picture of an id.
        digest: hash of ids and content.
        folder: name of the folder that holds them; None where they are drawn, and the benchmark gets files.
        paths: by id, below that folder.
    """

    name: str
    ids: Sequence[str]
    open: Callable[[str], Image]
    digest: str
    folder: str | None = None
    paths: Mapping[str, str] = field(default_factory=dict)


def looked_at(corpus: Corpus, images: Sequence[str]) -> list[Row]:
    """A row for each image: its size and the hash of its pixels, or why it cannot be used."""
    found = dict(done_in_parallel(lambda image: _look(corpus, image), ((one, one) for one in images), None))
    return [{"image": _written(image), **found[image]} for image in images]


def divided(rows: Iterable[Row], splits: Mapping[str, int], seed: int) -> list[Row]:
    """The rows, copies refused, the others with their split, grouped by it.

    Subsets are drawn within a split, so that no image is in two. Of images with the same pixels the first
    one stays: two of them in a gallery would be two right answers.

    Args:
        rows: of `looked_at`.
        splits: share of each in percent.
        seed: of the draw.

    Example:
        >>> rows = [{"image": str(number), "pixels": str(number % 3)} for number in range(4)]
        >>> [(row["image"], row.get("split"), row.get("failed")) for row in divided(rows, {"test": 100}, 0)]
        [('0', 'test', None), ('1', 'test', None), ('2', 'test', None), ('3', None, 'the same pixels as 0')]
    """
    first: dict[str, str] = {}
    used: list[Row] = []
    left: list[Row] = []
    for row in rows:
        if FAILED not in row and first.setdefault(row["pixels"], row["image"]) != row["image"]:
            row = {**row, FAILED: f"the same pixels as {first[row['pixels']]}"}
        (left if FAILED in row else used).append(row)
    order = Draws("cirr", "splits", seed).shuffled(range(len(used)))
    split_of: dict[int, str] = {}
    done = 0
    for split, share in splits.items():
        until = done + share
        for at in range(len(used) * done // IN_ALL, len(used) * until // IN_ALL):
            split_of[order[at]] = split
        done = until
    grouped = [
        {**used[place], "split": split}
        for split in splits
        for place in range(len(used))
        if split_of[place] == split
    ]
    return [*grouped, *left]


def bounds_of(rows: Iterable[Row]) -> dict[str, tuple[int, int]]:
    """From which to which row the images of each split stand, of `divided` without those that failed."""
    bounds: dict[str, tuple[int, int]] = {}
    for place, row in enumerate(rows):
        start, _ = bounds.get(row["split"], (place, place))
        bounds[row["split"]] = (start, place + 1)
    return bounds


def _look(corpus: Corpus, image: str) -> dict[str, Any]:
    why = _not_listed(image, corpus.paths.get(image))
    if why is not None:
        return {FAILED: why}
    try:
        picture = corpus.open(image).convert("RGB")
    except CirError as error:
        # What to do about it is for the terminal; paths of this machine stay out of the rows.
        return {FAILED: f"it cannot be opened ({type(error).__name__})"}
    pixels = hashlib.sha256(f"{picture.size}".encode() + picture.tobytes()).hexdigest()
    return {"width": picture.width, "height": picture.height, "pixels": pixels}


def _not_listed(image: str, path: str | None) -> str | None:
    """Why no gallery's list can name an image, or None; noticed here, since the list is written last."""
    line = image if path is None else f"{image}\t{path}"
    if _written(line) != line:
        return "its name is not UTF-8"
    row, fault = listed_image(line)
    if fault is None and row["image_id"] == image and "\n" not in line and line == line.strip("\ufeff\r"):
        return None
    return "its name has a tab, a line break or blanks at its ends, or leads out of the folder"


def _written(name: str) -> str:
    """A name as it can be written; bytes that are not UTF-8 are shown as such."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
