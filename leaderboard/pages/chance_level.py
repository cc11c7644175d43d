"""What a random order scores on a board: exact, from its data, or from its card where that says enough."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from cir_datasets import registry
from cir_metrics.catalogue import parse_metric
from leaderboard.boards import Board
from leaderboard.pages.board_queries import benchmark_here

if TYPE_CHECKING:
    from cir_datasets.registry.cards import BenchmarkSpec
    from submissions.report.floors import Chance

_BY_CARD = ("recall_at_k", "recall_subset")
"""Metrics of one target, whose chance level needs no more than the sizes of gallery and subset."""


def chance_level(board: Board) -> float | None:
    """The expected value of what ranks, of a random order; `submissions.report.floors` has the equations.

    Args:
        board: the board.

    Returns:
        A fraction, of a suite the mean over its members; None where it needs data that is not here, or has no
        closed form: of a dialogue, whose rounds follow from each other.

    Example:
        >>> from leaderboard import boards
        >>> round(chance_level(boards.board("cirr/val")), 6)  # mean(5/2296, 1/5)
        0.101089
    """
    if board.dialogue is not None:
        return None
    found = [_of(board, spec, term) for spec in board.specs for term in board.primary_terms]
    known = [value for value in found if value is not None]
    return math.fsum(known) / len(known) if len(known) == len(found) else None


def _of(board: Board, spec: BenchmarkSpec, metric: str) -> float | None:
    # The truth of a sealed board is not with its rows.
    benchmark = None if board.sealed else benchmark_here(spec)
    if benchmark is not None:
        return _by_data(spec.id, benchmark.data_hash, metric)
    if parse_metric(metric)[0] not in _BY_CARD:
        return None
    from submissions.report.floors import random_floor

    chance = _by_card(spec)
    return None if chance is None else random_floor(chance, [metric])[metric]


@functools.lru_cache(256)
def _by_data(benchmark_id: str, _data_hash: str, metric: str) -> float | None:
    from submissions.report.floors import chance, random_floor

    benchmark = benchmark_here(registry.spec(benchmark_id))
    found = None if benchmark is None else chance(benchmark)
    return None if found is None else random_floor(found, [metric])[metric]


def _by_card(spec: BenchmarkSpec) -> Chance | None:
    """A random ranker of one query, which all others are like."""
    from submissions.report.floors import Chance

    config = spec.config
    if config.gallery is None:
        return None
    images = config.gallery - (config.reference == "removed")
    others = max((config.subset or 1) - 1, 0)
    return Chance(
        images=images,
        depth=images,
        positives=np.ones(1, dtype=np.int64),
        negatives=np.zeros(1, dtype=np.int64),
        subset_others=np.full(1, others, dtype=np.int64),
        num_turns=None,
    )
