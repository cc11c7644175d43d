"""Rank groups of a board: which of its entries are tested, and by which values."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence

from cir_metrics.sums import FloatArray, exact_mean, exact_means
from leaderboard.boards import Board
from leaderboard.standings import Entry
from submissions.comparison.groups import EQUAL, leader_groups

log = logging.getLogger("leaderboard.standings")


def board_groups(
    board: Board,
    entries: Sequence[Entry],
    kept: Mapping[str, Mapping[str, FloatArray]],
    known: Mapping[str, float],
) -> tuple[dict[str, int], Mapping[str, float]]:
    """The rank groups of a board's entries: `leader_groups` over the values per query of what ranks.

    Where the mean of several metrics ranks, a query's value is the mean of its values by these. Baselines and
    entries without a rank (oracles, published rows, numbers that do not compare) stand outside: they get no
    group, and nobody's group depends on them. So does an entry without values of every term, with values of
    another number of queries than most, or whose values have another mean than its line shows. A board that
    a median or a count ranks, which is not a mean over queries, has no groups.

    Args:
        board: says what ranks.
        entries: from `standings`, of one block.
        kept: by submission id the values by metric, each of shape (n,), in the benchmark's order of queries.
        known: the tests of an earlier call, so that only new pairs are tested.

    Returns:
        The groups by submission id, and the tests behind them.
    """
    values: dict[str, FloatArray] = {}
    for entry in entries:
        if entry.rank is None:
            continue
        name = entry.submission.id
        by_metric = kept.get(name, {})
        terms = [by_metric[term] for term in board.primary_terms if term in by_metric]
        if len(terms) < len(board.primary_terms) or len(set(map(len, terms))) > 1:
            log.info("board %s: no values per query of %s", board.id, name)
            continue
        means = exact_means(terms)
        if math.isclose(exact_mean(means), entry.value, rel_tol=EQUAL, abs_tol=EQUAL):
            values[name] = means
    if not values:
        return {}, {}
    sizes = Counter(map(len, values.values()))
    most = max(sizes, key=lambda size: (sizes[size], size))
    values = {name: each for name, each in values.items() if len(each) == most}
    higher = board.primary_direction == "higher"
    groups = leader_groups(list(values.values()), higher=higher, key=board.benchmark, known=known)
    return dict(zip(values, groups.group, strict=True)), groups.tests
