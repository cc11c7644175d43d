"""Rankings by a method's scores (`Scorer`), in a file of its own: each kind of method is ranked in one."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.progress import step_progress
from cir_datasets.rows.benchmark import first_ranking, second_on_board
from cir_metrics.ranking import top_k
from submissions.methods.protocols import Scorer
from submissions.methods.sc4cir import Firsts
from submissions.methods.turns import Candidates, Turn, excluded_columns, turns_of
from submissions.methods.user_methods import scored
from submissions.rank_file.benchmarks import SUBSET_DEPTH
from submissions.running.aggregation import Aggregation, aggregate_scores
from submissions.running.answers import Answers

CELLS = 8_000_000
"""Scores held at once."""


def rank_by_scores(
    name: str, ranker: Scorer, gallery: Candidates, how: Aggregation, k: int, firsts: Firsts | None = None
) -> Answers:
    """The rankings of a benchmark by a method without weights, as many turns at once as fit.

    Args:
        name: what the method is called in messages.
        ranker: the method.
        gallery: the images to rank, and whose they are.
        how: how a session's turns become one ranking.
        k: images a ranking.
        firsts: what keeps the rankings for a re-ranker.

    Raises:
        MethodError: the pictures are not available, the aggregation needs vectors, or what the method gives
            is not one finite score a turn and image.
    """
    benchmark = gallery.benchmark
    answers = Answers(benchmark)
    rows, second = benchmark.rows(), second_on_board(benchmark.spec)
    step = max(1, CELLS // (len(gallery.ids) * 6))
    with step_progress(f"{name}: ranking {benchmark.id}", len(rows)) as advance:
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            by_row = [turns_of(row) for row in block]
            turns = [turn for own in by_row for turn in own]
            scores = scored(name, ranker, turns, gallery)
            if benchmark.multi_turn:
                aggregate_scores(how, scores, [len(own) for own in by_row])
            keys = [turn.key for turn in turns]
            ranked = best_by_scores(scores, gallery, block, turns, k)
            answers.add(block, ranked)
            if second is not None:
                for row, key, own in zip(block, keys, scores, strict=True):
                    members = second.images(row)
                    best = best_of_few(
                        own, gallery, members, key, SUBSET_DEPTH if firsts is None else len(members)
                    )
                    answers.second[row["query_id"]] = best
                    turns += turns_of(row)
                    ranked.append(best)
            if firsts is not None:
                # The second ones stand behind the others, in the same order.
                for turn, ranking, own in zip(turns, ranked, itertools.cycle(scores), strict=False):
                    firsts.add(turn, ranking, functools.partial(_some, own, gallery))
            advance(len(block))
    return answers


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


def _some(scores: NDArray[np.float64], gallery: Candidates, images: Sequence[str]) -> list[float]:
    return [float(scores[column]) for column in _columns(gallery, images)]


def _columns(gallery: Candidates, images: Sequence[str]) -> list[int]:
    return [gallery.place[image] for image in images]
