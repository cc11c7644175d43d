"""Two to four entries of a board side by side: the comparison that `cir compare` makes of the same files.

The scores are put together from what the store keeps, and `submissions.compare` does the rest; what ranks the
board leads.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import logging
import threading
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import replace
from typing import TYPE_CHECKING

import sqlalchemy as sa
from pydantic import TypeAdapter

from cir_metrics.errors import CallError
from cir_metrics.signature import package_version
from leaderboard import boards
from leaderboard.errors import PassingError
from leaderboard.inspection.numbers import GroupedNumbers
from leaderboard.inspection.reports import report_head
from leaderboard.store import Store
from leaderboard.store.database import upsert
from leaderboard.store.schema import views
from leaderboard.submission import Submission
from submissions.errors import ComparisonError
from submissions.scoring.score_report import ScoreReport

if TYPE_CHECKING:
    from submissions.comparison.result import Comparison

log = logging.getLogger("leaderboard.inspection")

_VERSION = 5
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
        etag = _etag(submissions)
        found = self._kept(submissions, etag)
        if found is not None:
            return found
        with self._lock:
            future = self._running.get(etag)
            if future is None:
                if len(self._running) >= _AT_ONCE:
                    raise PassingError(
                        f"{len(self._running)} comparisons wait to be made on this server. "
                        "Fix: load the page again in a minute."
                    )
                future = self._running[etag] = self._lane.submit(self._make_later, submissions, etag)
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
        etag = _etag(submissions)
        return self._kept(submissions, etag) or self._made(submissions, etag)

    def _make_later(self, submissions: Sequence[Submission], etag: str) -> Comparison | None:
        try:
            return self._made(submissions, etag)
        finally:
            with self._lock:
                self._running.pop(etag, None)

    def _made(self, submissions: Sequence[Submission], etag: str) -> Comparison | None:
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

        found = compare(whole)
        body = gzip.compress(_record().dump_json(found), mtime=0)
        row = {"changed": int(time.time()), "etag": etag, "body": body}
        with self._store.database.write() as connection:
            upsert(connection, views, {"name": _name(submissions), **row}, **row)
            mine = views.c.name.startswith(_PREFIX)
            latest = sa.select(views.c.name).where(mine).order_by(views.c.changed.desc(), views.c.name)
            names = connection.scalars(latest.offset(_KEPT)).all()
            connection.execute(views.delete().where(views.c.name.in_(names)))
        return found

    def _kept(self, submissions: Sequence[Submission], etag: str) -> Comparison | None:
        query = sa.select(views.c.body).where(views.c.name == _name(submissions), views.c.etag == etag)
        with self._store.database.read() as connection:
            body = connection.execute(query).scalar()
        return None if body is None else _read(body)


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
    heads = [_head(each) for each in submissions]
    shared = [name for name in heads[0].signatures if all(name in each.signatures for each in heads)]
    check_comparable(heads, shared)


def _head(submission: Submission) -> ScoreReport:
    """What of a score says whether it compares: names and signatures."""
    name = str((submission.method or {}).get("name", submission.id))
    return report_head(submission.scores or {}, f"{name} ({submission.id})")


def _name(submissions: Sequence[Submission]) -> str:
    """One for the same entries in any order: the store keeps the order that was asked for last."""
    return f"{_PREFIX}{','.join(sorted(each.id for each in submissions))}"


def _etag(submissions: Sequence[Submission]) -> str:
    """Names the scores that are compared."""
    scored = [each.last("scored", "rescored") for each in submissions]
    methods = [each.method or {} for each in submissions]
    named = [
        (each.id, method.get("name"), method.get("oracle"))
        for each, method in zip(submissions, methods, strict=True)
    ]
    said = [_VERSION, package_version(), named, [event and event.id for event in scored]]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _read(body: bytes) -> Comparison | None:
    """What was kept, or None where it is damaged."""
    try:
        return _record().validate_json(gzip.decompress(body))
    except (ValueError, OSError, EOFError, zlib.error):
        return None


@functools.cache
def _record() -> TypeAdapter[Comparison]:
    from submissions.comparison.result import Comparison

    return TypeAdapter(Comparison)
