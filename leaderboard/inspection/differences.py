"""Entries of a board side by side: the comparison that `cir compare` makes of the same files.

The scores are put together from what the store keeps, and `submissions.compare` does the rest; what ranks the
board leads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import replace
from typing import TYPE_CHECKING

from leaderboard import boards
from leaderboard.errors import PassingError
from leaderboard.inspection.numbers import GroupedNumbers
from leaderboard.inspection.reports import report_head
from leaderboard.store.submission import Submission

if TYPE_CHECKING:
    from submissions.comparison.result import Comparison

MOST = 4
"""Entries that a page compares at once."""
_WAIT_SECONDS = 2.0
"""How long a reader waits for a comparison that is not there yet."""
_AT_ONCE = 16
"""Comparisons that wait to be made; a request for one more is refused."""
_HELD = 64
"""Comparisons that are kept in memory, those asked for last."""


class Compared:
    """The comparisons that readers have asked for, made one after the other.

    Args:
        numbers: gives the entries' scores.
    """

    def __init__(self, numbers: GroupedNumbers) -> None:
        """Nothing is compared before it is asked for."""
        self._numbers = numbers
        self._lane = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compare")
        self._asked: OrderedDict[tuple[object, ...], Future[Comparison]] = OrderedDict()
        self._lock = threading.Lock()

    def close(self) -> None:
        """End the work in the background."""
        self._lane.shutdown(cancel_futures=True)

    def of(
        self, submissions: Sequence[Submission], seconds: float | None = _WAIT_SECONDS
    ) -> Comparison | None:
        """The differences of some entries, or None where they are not known yet.

        Args:
            submissions: two or more entries of one open board, the order of which is kept.
            seconds: how long to wait, None for as long as it takes; what is not known then is made in the
                background.

        Raises:
            ComparisonError: their comparability keys differ; the message says which part.
            PassingError: too many comparisons wait to be made, or the values of an entry are not here.
        """
        from submissions.comparison.keys import check_comparable

        check_comparable([report_head(each) for each in submissions])
        key = tuple(map(_scored, submissions))
        with self._lock:
            future = self._asked.get(key)
            if future is None or (future.done() and future.exception()):
                waiting = sum(not each.done() for each in self._asked.values())
                if waiting >= _AT_ONCE:
                    raise PassingError(
                        f"{waiting} comparisons wait to be made on this server. "
                        "Fix: load the page again in a minute."
                    )
                future = self._asked[key] = self._lane.submit(self._made, submissions)
            self._asked.move_to_end(key)
            while len(self._asked) > _HELD:
                self._asked.popitem(last=False)
        try:
            return future.result(seconds)
        except NotYetError:
            return None

    def _made(self, submissions: Sequence[Submission]) -> Comparison:
        from submissions.comparison.comparing import compare

        board = boards.board(submissions[0].board)
        whole = []
        for each in submissions:
            report = self._numbers.report(each)
            if report is None:
                raise PassingError(
                    f"what entry {each.id} answered each query with is not on this server now. Fix: load the "
                    f"page again when the data of {board.id} is prepared; an entry that an earlier version "
                    f"scored is scored again by  cir leaderboard rescore {board.id} --switch"
                )
            whole.append(replace(report, main_metric=board.primary, main=board.primary_value(report.metrics)))
        return compare(whole)


def _scored(submission: Submission) -> tuple[object, ...]:
    """Names the scores that are compared, and what the comparison calls them."""
    method, event = submission.method or {}, submission.last("scored", "rescored")
    return submission.id, method.get("name"), method.get("oracle"), event and event.id
