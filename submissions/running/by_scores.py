"""Rankings by a method's scores (`Scorer`), in a file of its own: each kind of method is ranked in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.progress import step_progress
from cir_datasets.rows.benchmark import first_ranking, second_on_board
from cir_metrics.ranking import top_k
from submissions.methods.turns import Candidates, Turn, excluded_columns, turns_of, with_references
from submissions.methods.user_methods import describe_method, scored
from submissions.rank_file.benchmarks import SUBSET_DEPTH
from submissions.running.answers import Answers, declaring_reference

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder
    from submissions.methods.protocols import Scorer
    from submissions.methods.reverse_processes import Ways
    from submissions.rank_file.model import RankFile
    from submissions.running.options import RunOptions

CELLS = 8_000_000
"""Scores held at once."""


class ByScores:
    """A method without weights, which scores as many turns at once as fit.

    Args:
        name: what the method is called in messages.
        method: who scores.
        gallery: the images to rank, and whose they are.
        options: of the run.
    """

    encoder: Encoder | None = None
    missing: frozenset[str] = frozenset()

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
        benchmark = self._gallery.benchmark
        described = describe_method(self._name, self._method)
        answers, second = Answers(benchmark), second_on_board(benchmark.spec)
        for rows, turns, scores in self._blocks():
            answers.add(rows, best_by_scores(scores, self._gallery, rows, turns, k))
            if second is not None:
                for row, turn, own in zip(rows, turns, scores, strict=True):
                    members = second.images(row)
                    depth = len(members) if whole else SUBSET_DEPTH
                    best = best_of_few(own, self._gallery, members, turn.key, depth)
                    answers.second[row["query_id"]] = best
        if self._how is not None:
            described = described.model_copy(update={"aggregation": self._how.text})
        return answers.rank_file(declaring_reference(described, benchmark))

    def similarities(self, asked: Sequence[tuple[Turn, Sequence[str]]]) -> list[list[float]]:
        """S1: the method's own scores."""
        wanted: dict[str, list[int]] = {}
        for place, (turn, _) in enumerate(asked):
            wanted.setdefault(turn.key, []).append(place)
        found: list[list[float]] = [[]] * len(asked)
        for _, turns, scores in self._blocks():
            for turn, own in zip(turns, scores, strict=True):
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

    def _blocks(self) -> Iterator[tuple[list[dict[str, Any]], list[Turn], NDArray[np.float64]]]:
        """Rows, their turns, and scores of shape (turns, images): of a session for the turns so far."""
        benchmark = self._gallery.benchmark
        rows, step = benchmark.rows(), max(1, CELLS // (len(self._gallery.ids) * 6))
        with step_progress(f"{self._name}: ranking {benchmark.id}", len(rows)) as advance:
            for start in range(0, len(rows), step):
                block = rows[start : start + step]
                by_row = [turns_of(row) for row in block]
                turns = [turn for own in by_row for turn in own]
                scores = scored(self._name, self._method, turns, self._gallery)
                if self._how is not None:
                    from submissions.running.aggregation import aggregate_scores

                    aggregate_scores(self._how, scores, [len(own) for own in by_row])
                yield block, turns, scores
                advance(len(block))


def best_by_scores(
    scores: NDArray[np.floating[Any]],
    gallery: Candidates,
    rows: Sequence[dict[str, Any]],
    turns: Sequence[Turn],
    k: int,
) -> list[list[str]]:
    """The first ranking of each turn: over the common gallery, or over the query's own list.

    Args:
        scores: of every image of the gallery, shape (turns, images).
        gallery: the image of each score.
        rows: the queries or sessions of the turns.
        turns: who asks.
        k: images at most.
    """
    first, keys = first_ranking(gallery.benchmark.spec), [turn.key for turn in turns]
    if first.column:
        return [
            best_of_few(own, gallery, first.images(row), key, k)
            for row, key, own in zip(rows, keys, scores, strict=True)
        ]
    return top_k(scores, gallery.ids, k, query_ids=keys, excluded=excluded_columns(turns, gallery))


def best_of_few(
    scores: NDArray[np.floating[Any]], gallery: Candidates, images: Sequence[str], key: str, k: int
) -> list[str]:
    """The best images of a query's own list.

    Args:
        scores: the query's scores of the whole gallery, shape (images,).
        gallery: the image of each score.
        images: the list.
        key: the query's id, on which its ties depend.
        k: images at most.
    """
    return top_k(scores[None, _columns(gallery, images)], images, k, query_ids=[key])[0]


def _columns(gallery: Candidates, images: Sequence[str]) -> list[int]:
    return [gallery.place[image] for image in images]
