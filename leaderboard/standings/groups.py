"""Rank groups of a board: which of its entries are tested, and by which values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cir_metrics.sums import FloatArray, exact_mean, exact_means
from leaderboard.boards import Board
from leaderboard.standings import Entry
from submissions.comparison.groups import EQUAL, Groups, leader_groups

ValuesOf = Callable[[str], Mapping[str, FloatArray] | None]
"""From a submission's id to its values per query by metric, or None where there are none."""


@dataclass(frozen=True)
class BoardGroups:
    """The rank groups of a board's entries.

    Args:
        submissions: ids of the entries that have a group, in the board's order.
        groups: theirs, or None where no entry has one.
    """

    submissions: tuple[str, ...] = ()
    groups: Groups | None = None

    @property
    def by_submission(self) -> dict[str, int]:
        """The group by submission id; entries outside the groups are left out."""
        return dict(zip(self.submissions, self.groups.group, strict=True)) if self.groups else {}


def board_groups(
    board: Board,
    entries: Sequence[Entry],
    values_of: ValuesOf,
    *,
    known: Mapping[str, float] | None = None,
) -> BoardGroups:
    """The rank groups of a board: `leader_groups` over the values per query of what ranks.

    Where the mean of several metrics ranks, a query's value is the mean of its values by these. Baselines and
    entries without a rank (oracles, published rows, numbers that do not compare) stand outside: they get no
    group, and nobody's group depends on them. So does an entry without values of every term, or whose values
    have another mean than its line shows. A board that a median or a count ranks, which is not a mean over
    queries, has no groups.

    Args:
        board: says what ranks.
        entries: from `standings`, best first.
        values_of: gives a submission's values by metric, each of shape (n,), in the benchmark's order of
            queries.
        known: `Groups.tests` of an earlier call, so that only new pairs are tested.

    Raises:
        InputError: two entries have values of different numbers of queries.
    """
    found: dict[str, FloatArray] = {}
    for entry in entries:
        if entry.rank is None or entry.submission.baseline:
            continue
        values = _ranking_values(board, values_of(entry.submission.id))
        if values is not None and math.isclose(exact_mean(values), entry.value, rel_tol=EQUAL, abs_tol=EQUAL):
            found[entry.submission.id] = values
    if not found:
        return BoardGroups()
    higher = board.primary_direction == "higher"
    groups = leader_groups(list(found.values()), higher=higher, key=board.benchmark, known=known)
    return BoardGroups(tuple(found), groups)


def _ranking_values(board: Board, values: Mapping[str, FloatArray] | None) -> FloatArray | None:
    """What each query adds to the number that ranks, or None where a term has no values."""
    if values is None or any(term not in values for term in board.primary_terms):
        return None
    return exact_means([values[term] for term in board.primary_terms])
