"""Two to four entries of a board side by side: which differences are more than chance, and on which queries.

The numbers are those of `cir compare` on the same files: the scores are put together from what the store
keeps, and `submissions.compare` does the rest.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

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

log = logging.getLogger("leaderboard.inspection")

_VERSION = 3
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


@dataclass(frozen=True)
class MetricDifference:
    """One metric of two entries: the first one's number minus the second's.

    Args:
        metric: its printed name.
        first: the first entry's number, a fraction (a rank where the metric is one).
        second: the second's.
        difference: first minus second.
        low: lower end of its 95 % interval, paired bootstrap.
        high: its upper end.
        p: of a two-sided paired randomisation test.
        adjusted: the same by Holm's correction over all tests of the comparison.
        significant: whether that is at most 0.05.
        wins: queries on which the first is better.
        ties: queries on which both have the same value.
        losses: queries on which the second is better.
    """

    metric: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    p: float
    adjusted: float
    significant: bool
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class PairDifferences:
    """Two entries.

    Args:
        first: place of the one among the compared entries, from 0.
        second: place of the other.
        metrics: the metrics in the board's order.
    """

    first: int
    second: int
    metrics: tuple[MetricDifference, ...]


@dataclass(frozen=True)
class Differences:
    """Two to four entries side by side.

    Args:
        submissions: their ids, in the order in which they were given.
        names: names of their methods; the id is added where two are the same.
        groups: the rank group of each within this comparison, from 1; None of an oracle.
        leading: the metric that groups are made by.
        unit: what was resampled, `queries` or `sessions`.
        n: their number.
        draws: draws of the bootstrap, and changes of sign of tests that are not exact.
        seed: their seed.
        tests: number of tests that Holm's correction covers.
        pairs: each entry with each later one.
        notes: sentences on what is not compared.
    """

    submissions: tuple[str, ...]
    names: tuple[str, ...]
    groups: tuple[int | None, ...]
    leading: str
    unit: str
    n: int
    draws: int
    seed: int
    tests: int
    pairs: tuple[PairDifferences, ...]
    notes: tuple[str, ...] = ()


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
        self._running: dict[str, Future[Differences | None]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """End the work in the background."""
        self._lane.shutdown(cancel_futures=True)

    def of(self, submissions: Sequence[Submission], seconds: float = _WAIT_SECONDS) -> Differences | None:
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

    def make(self, submissions: Sequence[Submission]) -> Differences | None:
        """The differences, made now; None where lists or values of an entry are not available.

        Raises:
            CallError: as for `of`.
            ComparisonError: as for `of`.
        """
        _refuse(submissions)
        etag = _etag(submissions)
        return self._kept(submissions, etag) or self._made(submissions, etag)

    def _make_later(self, submissions: Sequence[Submission], etag: str) -> Differences | None:
        try:
            return self._made(submissions, etag)
        finally:
            with self._lock:
                self._running.pop(etag, None)

    def _made(self, submissions: Sequence[Submission], etag: str) -> Differences | None:
        # The sessions of a dialogue are named by its lists; everything else is in the values.
        make = boards.board(submissions[0].board).dialogue is not None
        reports = [self._numbers.report(each, make=make) for each in submissions]
        whole = [each for each in reports if each is not None]
        if len(whole) < len(reports):
            return None
        from submissions.comparison.comparing import compare

        found = compare(whole)
        body = gzip.compress(json.dumps(found.to_dict()).encode(), mtime=0)
        row = {"changed": int(time.time()), "etag": etag, "body": body}
        with self._store.database.write() as connection:
            upsert(connection, views, {"name": _name(submissions), **row}, **row)
            mine = views.c.name.startswith(_PREFIX)
            latest = sa.select(views.c.name).where(mine).order_by(views.c.changed.desc(), views.c.name)
            names = connection.scalars(latest.offset(_KEPT)).all()
            connection.execute(views.delete().where(views.c.name.in_(names)))
        return _read(submissions, body)

    def _kept(self, submissions: Sequence[Submission], etag: str) -> Differences | None:
        query = sa.select(views.c.body).where(views.c.name == _name(submissions), views.c.etag == etag)
        with self._store.database.read() as connection:
            body = connection.execute(query).scalar()
        return None if body is None else _read(submissions, body)


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
    named = [(each.id, (each.method or {}).get("name")) for each in submissions]
    said = [_VERSION, package_version(), named, [event and event.id for event in scored]]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _read(submissions: Sequence[Submission], body: bytes) -> Differences | None:
    """What was kept, or None where it is damaged."""
    try:
        return _differences(submissions, json.loads(gzip.decompress(body)))
    except (ValueError, KeyError, TypeError, OSError, EOFError, zlib.error):
        return None


def _differences(submissions: Sequence[Submission], said: Mapping[str, Any]) -> Differences:
    methods = said["methods"]
    places = [(one, other) for one in range(len(methods)) for other in range(one + 1, len(methods))]
    pairs = []
    for (one, other), pair in zip(places, said["pairs"], strict=True):
        values = methods[one]["metrics"], methods[other]["metrics"]
        found = []
        for name, each in pair["metrics"].items():
            found.append(
                MetricDifference(
                    metric=name,
                    first=values[0][name],
                    second=values[1][name],
                    difference=each["difference"],
                    low=each["interval"][0],
                    high=each["interval"][1],
                    p=each["p"],
                    adjusted=each["p_holm"],
                    significant=each["significant"],
                    wins=each["wins"],
                    ties=each["ties"],
                    losses=each["losses"],
                )
            )
        pairs.append(PairDifferences(one, other, tuple(found)))
    unit = said["interval"]["resampled"]
    return Differences(
        submissions=tuple(each.id for each in submissions),
        names=tuple(method["name"] for method in methods),
        groups=tuple(method["group"] for method in methods),
        leading=said["leading_metric"],
        unit=unit,
        n=said[unit],
        draws=said["interval"]["draws"],
        seed=said["interval"]["seed"],
        tests=said["test"]["tests"],
        pairs=tuple(pairs),
        notes=tuple(said["notes"]),
    )
