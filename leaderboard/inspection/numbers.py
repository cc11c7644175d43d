"""Numbers of entries by aspect, turn and length of session, and the ranks of their right answers.

Tables by group are those of `cir score` for the same files (`submissions.report`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cir_metrics.measures import hits_at_k
from cir_metrics.resampling import bootstrap_means, percentile_interval
from cir_metrics.sums import exact_means
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.inspection.hits import main_cutoff
from leaderboard.inspection.lists import KeptLists, Lists
from leaderboard.inspection.reports import entry_report
from leaderboard.queue.beginnings import UNLISTED
from leaderboard.store import Store
from leaderboard.store.submission import Submission

if TYPE_CHECKING:
    from submissions.report.grouping import Grouping
    from submissions.scoring.evidence import Evidence
    from submissions.scoring.score_report import ScoreReport

_BINS = ((1, 1), (2, 5), (6, 10), (11, 50))
"""Ranks that are counted together; deeper ones follow."""


@dataclass(frozen=True)
class RankShare:
    """How many queries have their right answer in one range of ranks.

    Args:
        label: the range, or `not listed`.
        count: queries, of sessions by their last turn.
        share: of all queries.
    """

    label: str
    count: int
    share: float


@dataclass(frozen=True)
class TurnPoint:
    """Hits@K of an entry at one turn.

    Args:
        turn: 1, 2, ...
        value: share of all sessions that have found a target within K at that turn or before.
        low: lower end of its 95 % interval over sessions.
        high: its upper end.
    """

    turn: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class MemberNumbers:
    """An entry's numbers on one benchmark.

    Args:
        benchmark: its id.
        aspects: by aspect, or None where the benchmark has none.
        turns: by turn, or None of single queries.
        lengths: by number of turns, likewise.
        k: the cutoff of `curve`.
        curve: Hits@K by turn with intervals; empty of single queries.
        ranks: where right answers stand.
    """

    benchmark: str
    aspects: Grouping | None
    turns: Grouping | None
    lengths: Grouping | None
    k: int
    curve: tuple[TurnPoint, ...]
    ranks: tuple[RankShare, ...]


EntryNumbers = tuple[MemberNumbers, ...]
"""An entry's numbers: of the only benchmark, or of a suite's members in its order."""


class GroupedNumbers:
    """The numbers by group of all entries.

    Args:
        store: the submissions.
        lists: the beginnings of their rankings.
    """

    def __init__(self, store: Store, lists: Lists) -> None:
        """Nothing is computed before it is asked for."""
        self._store, self._lists = store, lists
        # As long as the lists that they are made of are in memory.
        self._held: WeakKeyDictionary[KeptLists, EntryNumbers] = WeakKeyDictionary()

    def report(self, submission: Submission) -> ScoreReport | None:
        """An entry's score with the values per query behind it.

        Returns:
            None where its values are not kept or never shown, and of a dialogue without lists. Without lists,
            the score has no ranks.
        """
        if not self._lists.shown(submission):
            return None
        return self._report(submission, self._lists.of(submission))

    def of(self, submission: Submission) -> EntryNumbers | None:
        """An entry's numbers by group; None where its lists or values are not kept, or never shown."""
        lists = self._lists.of(submission)
        if lists is None:
            return None
        numbers = self._held.get(lists)
        if numbers is None:
            report = self._report(submission, lists)
            if report is None:
                return None
            numbers = self._held[lists] = _numbers(boards.board(submission.board), report, lists)
        return numbers

    def side_by_side(self, submissions: Sequence[Submission]) -> dict[str, EntryNumbers]:
        """The numbers of several entries by submission id; those that have none are left out."""
        by_id = {each.id: self.of(each) for each in submissions}
        return {name: numbers for name, numbers in by_id.items() if numbers is not None}

    def _report(self, submission: Submission, lists: KeptLists | None) -> ScoreReport | None:
        board = boards.board(submission.board)
        return entry_report(board, submission, self._store.kept_values(submission.id), lists)


def rank_shares(ranks: NDArray[np.int32], deepest: int) -> tuple[RankShare, ...]:
    """How many ranks fall into each range.

    Args:
        ranks: 1 or more, `UNLISTED` for a right answer that is not listed, shape (n,).
        deepest: images of the longest list; ranges behind it are left out.

    Example:
        >>> [(each.label, each.count) for each in rank_shares(np.array([1, 7, 0, 3], dtype=np.int32), 10)]
        [('1', 1), ('2-5', 1), ('6-10', 1), ('not listed', 1)]
    """
    last = _BINS[-1][1]
    counts = {
        str(low) if low == high else f"{low}-{high}": int(((ranks >= low) & (ranks <= high)).sum())
        for low, high in _BINS
        if low <= max(deepest, int(ranks.max(initial=0)))
    }
    if max(deepest, int(ranks.max(initial=0))) > last:
        counts[f"over {last}"] = int((ranks > last).sum())
    counts["not listed"] = int((ranks == UNLISTED).sum())
    return tuple(RankShare(label, count, count / len(ranks)) for label, count in counts.items())


def _numbers(board: Board, report: ScoreReport, lists: KeptLists) -> EntryNumbers:
    from submissions.report import full_report

    k = main_cutoff(board)
    members = []
    for run, own in zip(report.parts, lists.members, strict=True):
        evidence = run.evidence
        # A dialogue has no chance level and no lengths: each of its sessions has all rounds.
        groupings = {} if board.dialogue is not None else dict(full_report(run).groupings)
        members.append(
            MemberNumbers(
                benchmark=run.benchmark,
                aspects=groupings.get("by_aspect"),
                turns=groupings.get("by_turn"),
                lengths=groupings.get("by_length"),
                k=k,
                curve=() if evidence is None else _curve(evidence, k),
                ranks=rank_shares(own.final_ranks, int(own.listed.max())),
            )
        )
    return tuple(members)


def _curve(evidence: Evidence, k: int) -> tuple[TurnPoint, ...]:
    if evidence.num_turns is None or evidence.ranks is None:
        return ()
    parts = [hits_at_k.per_query(evidence.ranks, evidence.num_turns, k)]
    if evidence.turn_ranks is not None:  # what each turn finds, over the sessions that still run
        columns = enumerate(evidence.turn_ranks.T)
        parts = [(ranks[evidence.num_turns > turn, None] <= k).astype(np.float64) for turn, ranks in columns]
    points: list[tuple[float, float, float]] = []
    for hits in parts:
        low, high = percentile_interval(bootstrap_means(hits, key=evidence.benchmark.id))
        points += zip(exact_means(hits).tolist(), low.tolist(), high.tolist(), strict=True)
    return tuple(TurnPoint(turn, *point) for turn, point in enumerate(points, start=1))
