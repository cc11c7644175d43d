"""What a method gets: turns, and the gallery with its pictures. A query is its only turn."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cir_datasets.registry.caption_rules import published_text
from submissions.errors import MethodError
from submissions.rank_file.model import turn_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cir_datasets.rows.benchmark import Benchmark

_SHRINK = 4


@dataclass(frozen=True)
class Turn:
    """One turn of a session, or a query, which is its only turn.

    Args:
        key: the query's id, or the session's id and the turn.
        reference: id of the reference image, or None where there is none.
        text: the relative caption, or "" where there is none; several are joined by `trim_and`.
        captions: the captions as published, for a caption rule to make text of; empty where there are none.
    """

    key: str
    reference: str | None
    text: str
    captions: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Candidates:
    """The images that are ranked.

    Args:
        benchmark: whose gallery it is.
        ids: image ids, in the manifest's order.
    """

    benchmark: Benchmark
    ids: Sequence[str]

    @functools.cached_property
    def place(self) -> dict[str, int]:
        """Column of each image."""
        return {image: column for column, image in enumerate(self.ids)}

    @functools.cached_property
    def pictures(self) -> NDArray[np.uint8]:
        """Small pictures of all images, RGB, shape (images, height, width, 3).

        Raises:
            MethodError: they are not available.
        """
        spec = self.benchmark.spec
        if spec.card.source.publisher != "embedded":
            raise MethodError(
                f"the pictures of {spec.id} are not part of this package, and this method looks at pixels. "
                "Fix: use --method random, or a benchmark of shapes."
            )
        from cir_datasets.shapes import split_of

        ids, pixels = _drawn(split_of(spec.config_name).name)
        order = {image: row for row, image in enumerate(ids)}
        unknown = next((image for image in self.ids if image not in order), None)
        if unknown is not None:
            raise MethodError(f"{spec.id} has no picture of {unknown!r}. Fix: prepare the benchmark anew.")
        return pixels[[order[image] for image in self.ids]]

    @functools.cached_property
    def _seen(self) -> dict[Callable[..., Any], NDArray[np.float64]]:
        return {}

    def seen(self, look: Callable[[NDArray[np.uint8]], NDArray[np.float64]]) -> NDArray[np.float64]:
        """What a function makes of the pictures, a row an image; kept, since each round of a dialogue asks.

        Args:
            look: from `pictures` to that.
        """
        if look not in self._seen:
            self._seen[look] = look(self.pictures)
        return self._seen[look]


@functools.lru_cache(maxsize=1)
def _drawn(split: str) -> tuple[list[str], NDArray[np.uint8]]:
    """Small pictures of a split of shapes; the last one is kept, for the next method."""
    from cir_datasets.shapes import load_pixels

    return load_pixels(split, shrink=_SHRINK)


def gallery_of(benchmark: Benchmark) -> Candidates:
    """The gallery of a benchmark.

    Raises:
        MethodError: its list is not available, so that there is nothing to rank.
    """
    if benchmark.gallery is None:
        raise MethodError(
            f"the gallery list of {benchmark.id} is not available, so there is nothing to rank. "
            f"Fix: see `cir datasets show {benchmark.id}` for where the publisher's list is had."
        )
    return Candidates(benchmark, benchmark.gallery)


def turns_of(row: dict[str, Any]) -> list[Turn]:
    """The turns of a row: a query is its only one.

    Example:
        >>> row = {"query_id": "7", "reference_image_id": "a", "captions": ["red ", "big"]}
        >>> turns_of(row)
        [Turn(key='7', reference='a', text='red and big', captions=('red ', 'big'))]
    """
    if "session_id" not in row:
        return [_turn(row["query_id"], row)]
    return [_turn(turn_key(row["session_id"], turn["turn"]), turn) for turn in row["turns"]]


def _turn(key: str, row: dict[str, Any]) -> Turn:
    text, captions = published_text(row)
    return Turn(key, row["reference_image_id"], text, captions)


def removed_reference(turn: Turn, gallery: Candidates) -> str | None:
    """The image that the protocol leaves out of a turn's ranking: its reference, or None."""
    return turn.reference if gallery.benchmark.excludes_reference else None


def excluded_columns(turns: Sequence[Turn], gallery: Candidates) -> NDArray[np.int64]:
    """Column of each turn's `removed_reference`; -1 for none."""
    import numpy as np

    removed = [removed_reference(turn, gallery) for turn in turns]
    return np.array([gallery.place.get(image or "", -1) for image in removed], dtype=np.int64)


def with_references(gallery: Candidates, references: Sequence[str]) -> Iterator[tuple[Candidates, list[int]]]:
    """The gallery, widened by the one reference that it lacks, and the places of its turns.

    References of others are left out, so that no turn's scores depend on which turns stand beside it.

    Args:
        gallery: the images that are ranked.
        references: the reference of each turn.
    """
    places: dict[str | None, list[int]] = {}
    for place, image in enumerate(references):
        places.setdefault(None if image in gallery.place else image, []).append(place)
    for outside, own in places.items():
        wider = gallery if outside is None else Candidates(gallery.benchmark, [*gallery.ids, outside])
        yield wider, own
