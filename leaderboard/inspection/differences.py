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
from leaderboard.inspection.lists import KeptLists, outcomes
from leaderboard.inspection.numbers import GroupedNumbers
from leaderboard.inspection.reports import report_head
from leaderboard.store import Store
from leaderboard.store.database import upsert
from leaderboard.store.schema import views
from leaderboard.submission import Submission
from submissions.errors import ComparisonError
from submissions.scoring.score_report import ScoreReport

log = logging.getLogger("leaderboard.inspection")

_VERSION = 1
"""Goes up whenever the same entries would be compared otherwise."""
MOST = 4
"""Entries that are compared at once."""
_WAIT_SECONDS = 2.0
"""How long a reader waits for a comparison that is not kept yet."""


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
        names: theirs, with more where two are called alike.
        groups: the rank group of each within this comparison, from 1.
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
    groups: tuple[int, ...]
    leading: str
    unit: str
    n: int
    draws: int
    seed: int
    tests: int
    pairs: tuple[PairDifferences, ...]
    notes: tuple[str, ...] = ()

    def pair(self, first: int, second: int) -> PairDifferences:
        """Two of the entries by their places, the one that was given earlier in front."""
        return next(each for each in self.pairs if (each.first, each.second) == (first, second))


@dataclass(frozen=True)
class Outcomes:
    """What became of each query under two entries.

    Args:
        k: a hit has a right answer among the first k, of a session's last turn.
        queries: by `won`, `lost`, `both hit`, `both miss` the benchmark and id of the queries, in its order.
    """

    k: int
    queries: Mapping[str, tuple[tuple[str, str], ...]]

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each."""
        return {name: len(each) for name, each in self.queries.items()}


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
            CallError: there are fewer than two or more than four, or one stands there twice.
            ComparisonError: they cannot be compared; the message says why.
        """
        _refuse(submissions)
        etag = _etag(submissions)
        found = self._kept(submissions, etag)
        if found is not None:
            return found
        with self._lock:
            future = self._running.get(etag)
            if future is None:
                future = self._running[etag] = self._lane.submit(self._make_later, submissions, etag)
        try:
            return future.result(seconds)
        except NotYetError:
            return None

    def make(self, submissions: Sequence[Submission]) -> Differences | None:
        """The differences, made now; None where lists or values of an entry are not to be had.

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
        row = {"changed": 0, "etag": etag, "body": body}
        with self._store.database.write() as connection:
            upsert(connection, views, {"name": _name(submissions), **row}, **row)
        return _read(submissions, body)

    def _kept(self, submissions: Sequence[Submission], etag: str) -> Differences | None:
        query = sa.select(views.c.body).where(views.c.name == _name(submissions), views.c.etag == etag)
        with self._store.database.read() as connection:
            body = connection.execute(query).scalar()
        return None if body is None else _read(submissions, body)


def query_outcomes(one: KeptLists, other: KeptLists, k: int) -> Outcomes:
    """What became of each query under two entries of one board.

    Args:
        one: lists of the entry that `won` and `lost` are said of.
        other: lists of the other.
        k: a hit has a right answer among the first k.

    Raises:
        ComparisonError: the two do not answer the same queries.
    """
    found: dict[str, list[tuple[str, str]]] = {"won": [], "lost": [], "both hit": [], "both miss": []}
    for mine, theirs in zip(one.members, other.members, strict=False):
        if (mine.benchmark, mine.names) != (theirs.benchmark, theirs.names):
            raise ComparisonError(
                f"the two entries do not answer the same queries of {mine.benchmark}. "
                "Fix: choose entries of one board whose numbers compare."
            )
        for name, outcome in zip(mine.names, outcomes(mine.hits(k), theirs.hits(k)), strict=True):
            found[outcome].append((mine.benchmark, name))
    return Outcomes(k, {name: tuple(each) for name, each in found.items()})


def _refuse(submissions: Sequence[Submission]) -> None:
    """Refuse what cannot be compared, before anything is computed.

    Raises:
        CallError: there are fewer than two or more than four, or one stands there twice.
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
    return f"compare:{','.join(each.id for each in submissions)}"


def _etag(submissions: Sequence[Submission]) -> str:
    """Names the scores that are compared."""
    scored = [each.last("scored", "rescored") for each in submissions]
    names = [(each.method or {}).get("name") for each in submissions]
    said = [_VERSION, package_version(), names, [event and event.id for event in scored]]
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
