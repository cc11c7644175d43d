"""The rankings that are asked of a benchmark's turns, until they are a rank file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from cir_datasets.rows.benchmark import first_ranking, second_on_board
from submissions.methods.sc4cir import by_rank
from submissions.rank_file.benchmarks import SUBSET_DEPTH
from submissions.rank_file.model import RankFile, turn_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cir_datasets.rows.benchmark import Benchmark
    from submissions.encoders.protocol import Encoder
    from submissions.methods.reverse_processes import Ways
    from submissions.methods.turns import Turn
    from submissions.rank_file.model import Method


class Order(Protocol):
    """Some turns, and the order in which each has images."""

    @property
    def turns(self) -> Sequence[Turn]:
        """Who asks."""

    def best(self, k: int) -> list[list[str]]:
        """The k best images of the gallery for each turn, without removed references."""

    def few(self, place: int, images: Sequence[str], k: int) -> list[str]:
        """The k best of a few images for the turn at that place."""


@dataclass
class Answers:
    """What a rank file holds beside its method.

    Args:
        benchmark: what is answered.
        keys: the query or turn of each ranking.
        lists: the rankings.
        second: by query the second ranking, over its own list; empty where the board asks for none.
    """

    benchmark: Benchmark
    keys: list[str] = field(default_factory=list)
    lists: list[list[str]] = field(default_factory=list)
    second: dict[str, list[str]] = field(default_factory=dict)

    def take(self, order: Order, rows: Sequence[dict[str, Any]], k: int, *, whole: bool = False) -> None:
        """Take in what is asked of turns: the first ranking, over the gallery or a list of the query's own.

        Args:
            order: puts images in order for them.
            rows: the query of each turn; of sessions nothing is read.
            k: images a ranking.
            whole: whether second rankings hold all that they rank, instead of what a board asks for.
        """
        first, second = first_ranking(self.benchmark.spec), second_on_board(self.benchmark.spec)
        self.keys += [turn.key for turn in order.turns]
        if first.column:
            self.lists += [order.few(place, first.images(row), k) for place, row in enumerate(rows)]
        else:
            self.lists += order.best(k)
        if second is not None:
            for place, row in enumerate(rows):
                images = second.images(row)
                depth = len(images) if whole else SUBSET_DEPTH
                self.second[row["query_id"]] = order.few(place, images, depth)

    def rank_file(self, method: Method) -> RankFile:
        """The rank file of a method that answers so."""
        asked, by_key = self.benchmark, dict(zip(self.keys, self.lists, strict=True))
        rankings: dict[str, list[Any]] = {}
        if asked.multi_turn:
            for session, count in zip(asked.query_ids, asked.column("num_turns"), strict=True):
                rankings[session] = [by_key[turn_key(session, turn)] for turn in range(1, count + 1)]
        else:
            rankings = {query: by_key[query] for query in asked.query_ids}
        second = None
        if second_on_board(asked.spec) is not None:
            second = {query: self.second[query] for query in asked.query_ids if query in self.second}
        return RankFile(asked.id, asked.version, method, rankings, second)


class ByRank:
    """A ranking of which no more is known than its order: S1 is by rank, and nobody knows S2.

    Args:
        top: N.
    """

    encoder: Encoder | None = None
    """That of the method, where it has one."""

    def __init__(self, top: int) -> None:
        """See the class."""
        self._top = top

    @property
    def missing(self) -> frozenset[str]:
        """Images that it could not look at."""
        return frozenset()

    @property
    def ways(self) -> Ways | None:
        """S2; None where nobody knows it."""
        return None

    def similarities(self, asked: Sequence[tuple[Turn, Sequence[str]]]) -> Sequence[Sequence[float]]:
        """S1 of the images of each turn, best first; it may end before those without a picture."""
        return [by_rank(self._top, images) for _, images in asked]


def declaring_reference(method: Method, benchmark: Benchmark) -> Method:
    """The method block with what ranking the gallery by our functions makes of the reference image.

    Args:
        method: who answers; what it declares itself stays.
        benchmark: what is ranked; where no reference is in the gallery there is nothing to declare.
    """
    use = benchmark.reference_use
    if method.reference or use in ("outside", "none"):
        return method
    return method.model_copy(update={"reference": use})
