"""The queries that somebody looks through: by text, by aspect, and by how one or two methods answer them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
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
class Choice:
    """A filter of a page of queries.

    Args:
        name: in the address.
        label: what the page calls it.
        options: by value what it is called; that of all is empty.
        chosen: one of them.
    """

    name: str
    label: str
    options: Mapping[str, str]
    chosen: str = ""


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
        return int(self.turns.max(initial=1))

    @functools.cached_property
    def texts(self) -> Sequence[tuple[str, ...]]:
        """What is searched of each: its id, and the caption of each turn."""
        return [
            (name, *(caption_of(turn) for turn in row.get("turns") or [row]))
            for name, row in self.rows.items()
        ]

    @functools.cached_property
    def turns(self) -> NDArray[np.int64]:
        """How many turns each has, shape (queries,)."""
        return np.array([len(row.get("turns") or (1,)) for row in self.rows.values()], dtype=np.int64)

    def choices(self, hits: Sequence[NDArray[np.bool_]] = ()) -> list[Choice]:
        """What the queries may be filtered by: aspect, number of turns, and how they come out.

        Args:
            hits: of one or two methods, which queries each hits.
        """
        counts = {"aspect": {name: int(each.sum()) for name, each in self.aspects.items()}}
        if self.longest > 1:
            counts["turns"] = Counter(map(str, sorted(self.turns.tolist())))
        if hits:
            came_out = Counter(self.outcomes(hits))
            counts["outcome"] = {
                name: came_out[name] for of, name in OUTCOMES.items() if len(of) == len(hits)
            }
        return [
            Choice(name, name.capitalize(), {"": "all"} | {one: f"{one} ({n:,})" for one, n in each.items()})
            for name, each in counts.items()
            if each
        ]

    def outcomes(self, hits: Sequence[NDArray[np.bool_]]) -> list[str]:
        """How each query comes out, as one of `OUTCOMES`."""
        return [OUTCOMES[tuple(each)] for each in np.stack(hits, axis=1).tolist()]

    def fitting(
        self, text: str, chosen: Mapping[str, str], hits: Sequence[NDArray[np.bool_]] = ()
    ) -> NDArray[np.bool_]:
        """Which queries filters let through.

        Args:
            text: in the id or in a caption of any turn, in capitals or not; empty for all.
            chosen: by the name of a choice one of its options; empty for all.
            hits: of each method, which queries it hits.
        """
        fits = np.ones(len(self.rows), dtype=np.bool_)
        if text:
            fits &= [any(text.casefold() in each.casefold() for each in texts) for texts in self.texts]
        if chosen.get("aspect"):
            fits &= self.aspects[chosen["aspect"]]
        if chosen.get("turns"):
            fits &= self.turns == int(chosen["turns"])
        if chosen.get("outcome"):
            fits &= np.array(self.outcomes(hits)) == chosen["outcome"]
        return fits


def caption_of(turn: Mapping[str, Any]) -> str:
    """What a turn, or a query of one turn, says; empty where it has no words.

    Args:
        turn: a row of single queries, or one of the turns of a session.

    Example:
        >>> caption_of({"captions": ["is red", "has dots"], "relative_caption": "is red"})
        'is red, and has dots'
    """
    return ", and ".join(turn.get("captions") or filter(None, [turn["relative_caption"]]))
