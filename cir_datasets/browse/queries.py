"""The queries that somebody looks through: by text, by aspect, and by how one or two methods answer them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.records import Row

OUTCOMES = {
    (True,): "hit",
    (False,): "miss",
    (True, False): "won",
    (False, True): "lost",
    (True, True): "both hit",
    (False, False): "both miss",
}
"""What is said of a query by the hits of one method, or of two; filters show them in this order."""


@dataclass(frozen=True)
class QueryRows:
    """The queries or sessions of a benchmark by id, in its order.

    Args:
        spec: the benchmark.
        rows: by id.
    """

    spec: BenchmarkSpec
    rows: Mapping[str, Row]

    @functools.cached_property
    def aspects(self) -> Mapping[str, NDArray[np.bool_]]:
        """By aspect which queries have it, the most frequent first."""
        named = [set(row.get("aspects") or ()) for row in self.rows.values()]
        known = sorted(set().union(*named))
        having = {aspect: np.array([aspect in each for each in named]) for aspect in known}
        return dict(sorted(having.items(), key=lambda item: -int(item[1].sum())))

    @functools.cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each id."""
        return {name: place for place, name in enumerate(self.rows)}

    @functools.cached_property
    def longest(self) -> int:
        """Turns of the longest session; 1 where there are none."""
        return max((len(row.get("turns") or (1,)) for row in self.rows.values()), default=1)

    def fitting(
        self, text: str = "", aspect: str = "", outcome: str = "", hits: Sequence[NDArray[np.bool_]] = ()
    ) -> NDArray[np.bool_]:
        """Which queries filters let through.

        Args:
            text: in the id or in a caption of any turn, in capitals or not; empty for all.
            aspect: one of `aspects`; empty for all.
            outcome: one of `OUTCOMES` for so many methods; empty for all.
            hits: of each method, which queries it hits.
        """
        fits = np.ones(len(self.rows), dtype=np.bool_)
        if text:
            wanted = text.casefold()
            fits &= [any(wanted in each.casefold() for each in _words(*item)) for item in self.rows.items()]
        if aspect:
            fits &= self.aspects[aspect]
        if outcome:
            came_out = [OUTCOMES[tuple(each)] for each in np.stack(hits, axis=1).tolist()]
            fits &= np.array(came_out) == outcome
        return fits


def _words(name: str, row: Row) -> Iterator[str]:
    yield name
    for turn in row.get("turns") or [row]:
        yield caption_of(turn)


def caption_of(turn: Mapping[str, Any]) -> str:
    """What a turn, or a query of one turn, says; empty where it has no words.

    Args:
        turn: a row of single queries, or one of the turns of a session.

    Example:
        >>> caption_of({"captions": ["is red", "has dots"], "relative_caption": "is red"})
        'is red, and has dots'
    """
    return ", and ".join(turn.get("captions") or filter(None, [turn["relative_caption"]]))
