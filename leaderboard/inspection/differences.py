"""Two to four entries of a board side by side: the comparison that `cir compare` makes of the same files.

The scores are put together from what the store keeps, and `submissions.compare` does the rest; what ranks the
board leads.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import threading
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from cir_metrics.errors import CallError
from cir_metrics.signature import package_version
from leaderboard import boards
from leaderboard.errors import PassingError
from leaderboard.inspection.numbers import GroupedNumbers
from leaderboard.inspection.reports import report_head
from leaderboard.store import Store
from leaderboard.submission import Submission
from submissions.errors import ComparisonError

if TYPE_CHECKING:
    from submissions.comparison.result import Comparison

_VERSION = 6
"""Goes up whenever a comparison of the same entries would give another result."""
MOST = 4
"""Entries that are compared at once."""
_WAIT_SECONDS = 2.0
"""How long a reader waits for a comparison that is not kept yet."""
_AT_ONCE = 16
"""Comparisons that wait to be made; a request for one more is refused."""
_KEPT = 1000
"""Comparisons that the store keeps, those made last."""
_PREFIX = "compare:"


class Compared:
    """The comparisons that readers have asked for.

    Args:
        store: the submissions, and where comparisons are kept.
        numbers: gives the entries' scores.
    """

    def __init__(self, store: Store, numbers: GroupedNumbers) -> None:
        """Nothing is compared before it is asked for."""
        self._store, self._numbers = store, numbers
        self._lane = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compare")
        self._running: dict[str, Future[Comparison | None]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """End the work in the background."""
        self._lane.shutdown(cancel_futures=True)

    def of(self, submissions: Sequence[Submission], seconds: float = _WAIT_SECONDS) -> Comparison | None:
        """The differences of some entries, or None where they are not known after some seconds.

        Args:
            submissions: two to four entries of one open board, the order of which is kept.
            seconds: how long to wait for what is not kept yet; it goes on in the background.

        Raises:
            CallError: there are fewer than two or more than four, or one is named twice.
            ComparisonError: they cannot be compared; the message says why.
            PassingError: too many comparisons wait to be made.
        """
        _refuse(submissions)
        kept = self._kept(submissions)
        if kept is not None:
            return kept
        etag = _etag(submissions)
        with self._lock:
            future = self._running.get(etag)
            if future is None:
                if len(self._running) >= _AT_ONCE:
                    raise PassingError(
                        f"{len(self._running)} comparisons wait to be made on this server. "
                        "Fix: load the page again in a minute."
                    )
                future = self._running[etag] = self._lane.submit(self._made, submissions)
                future.add_done_callback(lambda _: self._running.pop(etag, None))
        try:
            return future.result(seconds)
        except NotYetError:
            return None

    def make(self, submissions: Sequence[Submission]) -> Comparison | None:
        """The differences, made now; None where lists or values of an entry are not available.

        Raises:
            CallError: as for `of`.
            ComparisonError: as for `of`.
        """
        _refuse(submissions)
        return self._kept(submissions) or self._made(submissions)

    def _made(self, submissions: Sequence[Submission]) -> Comparison | None:
        # The sessions of a dialogue are named by its lists; everything else is in the values.
        board = boards.board(submissions[0].board)
        reports = [self._numbers.report(each, make=board.dialogue is not None) for each in submissions]
        whole = [
            replace(each, main_metric=board.primary, main=board.primary_value(each.metrics))
            for each in reports
            if each is not None
        ]
        if len(whole) < len(reports):
            return None
        from submissions.comparison.comparing import compare

        comparison = compare(whole)
        body = gzip.compress(_record().dump_json(comparison), mtime=0)
        self._store.keep_view(_name(submissions), _etag(submissions), body, changed=int(time.time()))
        self._store.drop_views(_PREFIX, _KEPT)
        return comparison

    def _kept(self, submissions: Sequence[Submission]) -> Comparison | None:
        """What was kept, or None where there is none of these scores, or it is damaged."""
        body = self._store.kept_view(_name(submissions), _etag(submissions))
        try:
            return None if body is None else _record().validate_json(gzip.decompress(body))
        except (ValueError, OSError, EOFError, zlib.error):
            return None


def _refuse(submissions: Sequence[Submission]) -> None:
    """Refuse what cannot be compared, before anything is computed.

    Raises:
        CallError: there are fewer than two or more than four, or one is named twice.
        ComparisonError: they are of several boards or a sealed one, or their comparability keys differ.
    """
    from submissions.comparison.keys import check_comparable

    ids = [each.id for each in submissions]
    if not 2 <= len(ids) <= MOST or len(set(ids)) < len(ids):
        raise CallError(f"{len(ids)} entries to compare. Fix: name two to {MOST}, each once.")
    asked = sorted({each.board for each in submissions})
    if len(asked) > 1:
        raise ComparisonError(
            f"the entries stand on the boards {', '.join(asked)}. Fix: choose entries of one board."
        )
    board = boards.board(asked[0])
    if board.sealed:
        raise ComparisonError(
            f"{board.id} is a sealed board: which queries an entry gets right would show its ground truth. "
            "Fix: compare the values on the board."
        )
    heads = [report_head(each) for each in submissions]
    shared = [name for name in heads[0].signatures if all(name in each.signatures for each in heads)]
    check_comparable(heads, shared)


def _name(submissions: Sequence[Submission]) -> str:
    """One for the same entries in any order: the store keeps the order that was asked for last."""
    return f"{_PREFIX}{','.join(sorted(each.id for each in submissions))}"


def _etag(submissions: Sequence[Submission]) -> str:
    """Names the scores that are compared."""
    named, scored = [], []
    for each in submissions:
        method, event = each.method or {}, each.last("scored", "rescored")
        named.append((each.id, method.get("name"), method.get("oracle")))
        scored.append(event and event.id)
    said = [_VERSION, package_version(), named, scored]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


@functools.cache
def _record() -> TypeAdapter[Comparison]:
    from submissions.comparison.result import Comparison

    return TypeAdapter(Comparison)
