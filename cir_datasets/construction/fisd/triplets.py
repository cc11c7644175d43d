"""A triplet as it stands after drawing and review, and what people have decided on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Decided:
    """What people have said of a triplet, over all files that were taken in.

    Args:
        id: of the triplet.
        attempt: how often its pictures were drawn anew.
        verdict: of its present pictures: `keep`, `drop`, or empty where nobody has looked at them.
        relative_caption: the corrected one, or empty.
        counts: corrected numbers of reference, target and negative, 0 where there is none; or empty.
        note: why.
        said: everything that was said, in order, also of earlier pictures.
    """

    id: str
    attempt: int = 0
    verdict: str = ""
    relative_caption: str = ""
    counts: Sequence[int] = ()
    note: str = ""
    said: Sequence[Row] = ()

    def as_row(self) -> Row:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True)
class ReviewedTriplet:
    """All that is known of a triplet after the last stage but one.

    Args:
        id: of its query.
        aspect: its aspect.
        captions: of reference, target and hard negative.
        relative_caption: what is asked.
        images: ids of the three, in the order of the captions; empty where none could be drawn.
        seed: of the pictures.
        decision: what people said.
        failed: why it is not a query, or None.
        original: captions and counts before a person corrected them, or None.
        noun: of cardinality what is counted.
        numbers: of cardinality the three numbers.
    """

    id: str
    aspect: str
    captions: tuple[str, ...]
    relative_caption: str
    images: tuple[str, ...]
    seed: int
    decision: Decided
    failed: str | None = None
    original: Row | None = None
    noun: str | None = None
    numbers: tuple[int, ...] = ()
