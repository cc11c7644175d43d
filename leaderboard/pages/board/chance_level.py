"""What a random order scores on a board: exact, from its data, or from its card where that says enough."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cir_datasets import registry
from cir_datasets.registry.schema import is_micro, member_metric
from cir_datasets.registry.suites import mean_over_members
from cir_datasets.rows.right import counts_all_positives
from cir_metrics.catalogue import parse_metric
from cir_metrics.sums import FloatArray, exact_mean
from leaderboard.boards import Board
from leaderboard.pages.queries import benchmark_here
from submissions.scoring.score_report import main_value

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from submissions.report.grouping import Chance
    from submissions.transcripts.settings import RoundSettings

_BY_CARD = ("recall_at_k", "recall_subset")
"""Metrics of one target, whose chance level needs no more than the sizes of gallery and subset."""


def chance_level(board: Board) -> float | None:
    """The expected value of what ranks, of a random order; `submissions.report.grouping` has the equations.

    Args:
        board: the board.

    Returns:
        A fraction, of a suite the mean over its members as what ranks takes it, of a dialogue as
        `dialogue_values` says; None where it needs data that is not here, or has no closed form.

    Example:
        >>> from leaderboard import boards
        >>> round(chance_level(boards.board("cirr/val")), 6)  # mean(5/2296, 1/5)
        0.101089
    """
    return main_value(board.primary, {term: _over_members(board, term) for term in board.primary_terms})


def _over_members(board: Board, term: str) -> float | None:
    """One term: the mean over the members, in which a micro mean weighs each query the same."""
    values = [_of(board, spec, member_metric(term)) for spec in board.specs]
    known = [value for value in values if value is not None]
    sizes = [spec.config.queries or 0 for spec in board.specs]
    if len(known) < len(values) or (is_micro(term) and 0 in sizes):
        return None
    return mean_over_members(term, known, sizes)


def _of(board: Board, spec: BenchmarkSpec, metric: str) -> float | None:
    settings = None if board.dialogue is None else board.dialogue.choices
    # The truth of a sealed board is not with its rows.
    benchmark = None if board.sealed else benchmark_here(spec)
    if benchmark is not None:
        return _by_data(spec.id, benchmark.data_hash, metric, settings)
    if settings is not None:
        # Each query has one right picture alone where no metric of the card counts several.
        one_target = settings.start == "random" or not any(map(counts_all_positives, spec.metrics))
        return _expected(_by_card(spec) if one_target else None, metric, settings)
    return _expected(_by_card(spec) if parse_metric(metric)[0] in _BY_CARD else None, metric, None)


@functools.lru_cache(256)
def _by_data(benchmark_id: str, _data_hash: str, metric: str, settings: RoundSettings | None) -> float | None:
    from submissions.report.grouping import chance

    benchmark = benchmark_here(registry.spec(benchmark_id))
    found = None if benchmark is None else chance(benchmark)
    if found is not None and settings is not None and settings.start == "random":
        found = replace(found, positives=np.ones_like(found.positives))
    return _expected(found, metric, settings)


def _expected(random: Chance | None, metric: str, settings: RoundSettings | None) -> float | None:
    from submissions.report.grouping import random_floor

    if random is None:
        return None
    if settings is None:
        return random_floor(random, [metric])[metric]
    values = dialogue_values(random, metric, settings)
    return None if values is None else exact_mean(values)


def dialogue_values(random: Chance, metric: str, settings: RoundSettings) -> FloatArray | None:
    """The expected value of each query's dialogue, a new random order in every round, while the user goes on.

    With h the probability of a target within K in one round, the hits of round r are 1 - (1 - h)^r. A session
    that stops at its first hit keeps the AP@K of that round: E[AP@K] * (1 - (1 - h)^r) / h, as a list without
    a hit earns nothing. One that goes on has E[AP@K] in every round.

    Args:
        random: the random ranker of the queries.
        metric: printed name with its round, `hits@10@turn5` or `map@5@turn5`.
        settings: of the dialogue.

    Returns:
        Shape (n,); None where there is no closed form, such as below the rank at which a session stops.
    """
    name, _, turn = metric.partition("@turn")
    kind, k = parse_metric(name)
    rounds = int(turn or settings.max_rounds)
    stops = settings.after_success == "stop"
    if k is None or kind not in ("hits_at_k", "map_at_k") or (stops and k != settings.k):
        return None
    played = replace(random, num_turns=np.full(len(random.positives), rounds, dtype=np.int64))
    hits: FloatArray = played.hits(k)[:, -1]
    if kind == "hits_at_k":
        return hits
    values = random.average_precision(k)
    return values * hits / random.found(k) if stops else values


def _by_card(spec: BenchmarkSpec) -> Chance | None:
    """A random ranker of one query, which all others are like."""
    from submissions.report.grouping import Chance

    config = spec.config
    if config.gallery is None or spec.per_query:
        return None
    images = config.gallery - (config.reference == "removed")
    others = max((config.subset or 1) - 1, 0)
    return Chance(
        images=images,
        depth=images,
        positives=np.ones(1, dtype=np.int64),
        negatives=np.zeros(1, dtype=np.int64),
        second_others=np.full(1, others, dtype=np.int64),
        num_turns=None,
    )
