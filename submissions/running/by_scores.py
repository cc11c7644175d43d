"""Rankings by a method's scores (`Scorer`), in a file of its own: each kind of method is ranked in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.progress import step_progress
from cir_metrics.ranking import top_k
from submissions.methods.turns import Candidates, Turn, excluded_columns, turns_of, with_references
from submissions.methods.user_methods import describe_method, scored
from submissions.running.answers import Answers, ByRank, declaring_reference

if TYPE_CHECKING:
    from submissions.methods.protocols import Scorer
    from submissions.methods.reverse_processes import Ways
    from submissions.rank_file.model import RankFile
    from submissions.running.aggregation import Aggregation
    from submissions.running.options import RunOptions

CELLS = 8_000_000
"""Scores held at once."""


class ByScores(ByRank):
    """A method without weights, which scores as many turns at once as fit.

    Args:
        name: what the method is called in messages.
        method: who scores.
        gallery: the images to rank, and whose they are.
        options: of the run.
    """

    def __init__(self, name: str, method: Scorer, gallery: Candidates, options: RunOptions) -> None:
        """See the class."""
        self._name, self._method, self._gallery = name, method, gallery
        self._how = None
        if gallery.benchmark.multi_turn:
            self._how = options.aggregated(getattr(method, "aggregation", "latest"))

    def rank(self, k: int, *, whole: bool) -> RankFile:
        """The rank file of its rankings.

        Args:
            k: images a ranking.
            whole: whether second rankings hold all that they rank, instead of what a board asks for.

        Raises:
            MethodError: the pictures are not available, the aggregation needs vectors, or what the method
                gives is not one finite score a turn and image.
        """
        (made,) = self._ranked([self._how], k, whole=whole)
        return made

    def rank_by_each(self, each: Sequence[RunOptions], k: int) -> list[RankFile]:
        """A rank file for each of some aggregations; every turn is scored once.

        Args:
            each: options of a run, which name the aggregations.
            k: images a ranking.

        Raises:
            MethodError: as for `rank`.
        """
        return self._ranked([one.aggregated() for one in each], k, whole=False)

    def _ranked(self, hows: Sequence[Aggregation | None], k: int, *, whole: bool) -> list[RankFile]:
        benchmark = self._gallery.benchmark
        described = describe_method(self._name, self._method)
        found = [Answers(benchmark) for _ in hows]
        for rows, turns, scores, lengths in self._blocks():
            for how, answers in zip(hows, found, strict=True):
                own = _aggregated(how, scores if len(hows) == 1 else scores.copy(), lengths)
                answers.take(ScoreOrder(turns, own, self._gallery), rows, k, whole=whole)
        said = ({} if how is None else {"aggregation": how.text} for how in hows)
        return [
            answers.rank_file(declaring_reference(described.model_copy(update=update), benchmark))
            for answers, update in zip(found, said, strict=True)
        ]

    def similarities(self, asked: Sequence[tuple[Turn, Sequence[str]]]) -> list[list[float]]:
        """S1: the method's own scores."""
        wanted: dict[str, list[int]] = {}
        for place, (turn, _) in enumerate(asked):
            wanted.setdefault(turn.key, []).append(place)
        found: list[list[float]] = [[]] * len(asked)
        for _, turns, scores, lengths in self._blocks():
            for turn, own in zip(turns, _aggregated(self._how, scores, lengths), strict=True):
                for place in wanted.get(turn.key, ()):
                    found[place] = own[_columns(self._gallery, asked[place][1])].tolist()
        return found

    @property
    def ways(self) -> Ways:
        """S2: its score of the reference for (c, T'), among the whole gallery."""
        from submissions.methods.reverse_processes import Ways

        return Ways(self._back, self._back)

    def _back(self, turns: Sequence[Turn], references: Sequence[str]) -> list[float]:
        found = np.zeros(len(turns))
        for wider, places in with_references(self._gallery, references):
            step = max(1, CELLS // len(wider.ids))
            for start in range(0, len(places), step):
                some = places[start : start + step]
                scores = scored(self._name, self._method, [turns[place] for place in some], wider)
                columns = [wider.place[references[place]] for place in some]
                found[some] = scores[np.arange(len(columns)), columns]
        return list(map(float, found))

    def _blocks(self) -> Iterator[tuple[list[dict[str, Any]], list[Turn], NDArray[np.float64], list[int]]]:
        """Rows, their turns, each turn's own scores of shape (turns, images), and the rows' turns."""
        benchmark = self._gallery.benchmark
        rows, step = benchmark.rows(), max(1, CELLS // (len(self._gallery.ids) * 6))
        with step_progress(f"{self._name}: ranking {benchmark.id}", len(rows)) as advance:
            for start in range(0, len(rows), step):
                block = rows[start : start + step]
                by_row = [turns_of(row) for row in block]
                turns = [turn for own in by_row for turn in own]
                scores = scored(self._name, self._method, turns, self._gallery)
                yield block, turns, scores, [len(own) for own in by_row]
                advance(len(block))


def _aggregated(
    how: Aggregation | None, scores: NDArray[np.float64], lengths: Sequence[int]
) -> NDArray[np.float64]:
    """Of a session the scores for the turns so far, in the place of each turn's own; of a query its own."""
    if how is not None:
        from submissions.running.aggregation import aggregate_scores

        aggregate_scores(how, scores, lengths)
    return scores


@dataclass(frozen=True)
class ScoreOrder:
    """Images in the order of their scores.

    Args:
        turns: who asks.
        scores: of every image of the gallery, shape (turns, images).
        gallery: the image of each score.
    """

    turns: Sequence[Turn]
    scores: NDArray[np.floating[Any]]
    gallery: Candidates

    def best(self, k: int) -> list[list[str]]:
        """The k best images of the gallery for each turn, without removed references."""
        keys, excluded = [turn.key for turn in self.turns], excluded_columns(self.turns, self.gallery)
        return top_k(self.scores, self.gallery.ids, k, query_ids=keys, excluded=excluded)

    def few(self, place: int, images: Sequence[str], k: int) -> list[str]:
        """The k best of a few images for the turn at that place."""
        scores = self.scores[place : place + 1, _columns(self.gallery, images)]
        return top_k(scores, images, k, query_ids=[self.turns[place].key])[0]


def _columns(gallery: Candidates, images: Sequence[str]) -> list[int]:
    return [gallery.place[image] for image in images]
