"""Everything that a score says: further metrics, floors, tables by aspect, turn, session length and member.

`full_report(score(...))` is what `cir score` prints; all of it is computed from the values a query that the
score keeps (`ScoreReport.evidence`), so that no ranking is looked at twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from submissions.report.document import Report

if TYPE_CHECKING:
    from submissions.scoring.intervals import Intervals
    from submissions.scoring.score_report import ScoreReport

__all__ = ["Report", "full_report"]


def full_report(score: ScoreReport, intervals: Intervals | None = None) -> Report:
    """The report of a score.

    Args:
        score: what `submissions.score` returned.
        intervals: of the same score, from `submissions.intervals.intervals`; shown beside the numbers.

    Returns:
        Tables, JSON values, and the text of any format.

    Example:
        >>> from submissions import make_rank_file, score
        >>> report = full_report(score(make_rank_file("shapes/val", "random")))
        >>> [table.title for table in report.tables()]
        ['Random on shapes/val#2, 300 answered', 'Counts', 'By aspect']
    """
    from submissions.report.building import build

    return build(score, intervals)
