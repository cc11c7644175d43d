"""The worker: takes submissions from the queue through judging, and leaves none stuck.

Several workers may share a store. Trouble of the server puts a submission off, for longer each time; a file
fails by what its own judge met. Nothing that one submission does ends the worker. Signs of life, jobs of dead
workers, tables and refused files are seen to on clocks of their own, however much waits.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

import cir_datasets
from cir_datasets.errors import DatasetError
from cir_metrics.catalogue import package_version
from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.boards import Board, data
from leaderboard.errors import (
    ChildCrashedError,
    ConflictError,
    LostFileError,
    PassingError,
    SubmissionStoreError,
    UploadRefusedError,
    is_passing,
)
from leaderboard.intake.destination import with_offer
from leaderboard.intake.life import refuse_contradiction, refuse_taken_name, same_rankings
from leaderboard.queue.child import Judged, Limits, judge_for
from leaderboard.queue.jobs import BEATS_A_LEASE, LEASE_SECONDS, Job, Jobs
from leaderboard.store import Decide, Happened, Store
from leaderboard.store.files import FileStore
from leaderboard.store.submission import Submission
from leaderboard.store.sweeping import Sweeper

log = logging.getLogger("leaderboard.worker")

PUBLIC_FAILURE = (
    "The server could not judge this file; its organisers find the reason in the log. The file is not at "
    "fault: send it again later."
)
CRASHED = (
    "Judging this file ended twice without an answer. The organisers of this leaderboard can have it judged "
    "again."
)
BOARD_REMOVED = "The board was removed from this server before the file was judged. Send it to another board."

_LOOK_AGAIN_SECONDS = 0.5
"""How often the store is asked for work that nobody announced (another process put it there)."""


class Worker:
    """Judges submissions one after another; owners take turns.

    Args:
        files: the rank files.
        store: where the submissions are.
        limits: what judging one file may take; None takes the usual limits.
        refresh: called with a board after files for it were judged, beside the judging.
        refused_days: days for which a refused file is kept; 0 for ever.
        lease_seconds: after so long without a sign of life another worker is taken to be dead.
    """

    def __init__(
        self,
        files: FileStore,
        store: Store,
        *,
        limits: Limits | None = None,
        refresh: Callable[[Board], object] | None = None,
        refused_days: int = 0,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        """Remember the rooms; nothing runs before `start`."""
        self._files = files
        self._store = store
        self._limits = limits or Limits()
        self._refresh = refresh
        self._news: deque[Submission] = deque()
        self._lease_seconds = lease_seconds
        name = f"{socket.gethostname()[:32]}:{os.getpid()}:{secrets.token_hex(3)}"
        keep_for = timedelta(days=refused_days)
        self._sweeper = Sweeper(store.database, files, keep_for) if refused_days else None
        self._jobs = Jobs(store, name)
        self._prepared: set[str] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin in the background, with what an earlier run left unfinished."""
        self._thread = threading.Thread(target=self.run, name="worker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End at once; what is left, the submission in hand too, is taken up by the next worker."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def stopped_by_signal(self, _number: int, _frame: object) -> None:
        """Stop soon, as a handler of signals.

        The flag has a lock. The thread that handles a signal may hold it already, from waiting or from an
        earlier signal, and would wait for itself; another thread waits until it is free.
        """
        threading.Thread(target=self._stop.set, name="stopped", daemon=True).start()

    def load(self, board: Board) -> None:
        """Prepare what a board ranks, so that what is wrong with its data is said before a file is taken.

        Raises:
            DatasetError: its data cannot be read.
        """
        if board.benchmark not in self._prepared:
            for benchmark in board.benchmarks:
                cir_datasets.prepare(benchmark)
            self._prepared.add(board.benchmark)

    def process(self, submission: Submission) -> Submission:
        """Take one submission to its end, and give it back as it stands then.

        Where another worker judges it at this moment, its end is waited for.

        Raises:
            PassingError: the machine is in trouble, or the board's data is gone; the submission waits.
            ChildCrashedError: judging ended without an answer for the first time; the submission waits.
        """
        with self._beating():
            while not submission.finished:
                job = self._jobs.take(submission.id)
                if job is None:
                    self._stop.wait(_LOOK_AGAIN_SECONDS)
                else:
                    self._judge(job)
                submission = self._store.submission(submission.id) or submission
        return submission

    def run(self) -> None:
        """Judge until `stop`."""
        with self._beating(), _beside(self._keep_up, _LOOK_AGAIN_SECONDS):
            _repeat(self._judge_all, _LOOK_AGAIN_SECONDS, self._stop)

    def _judge_all(self) -> None:
        """Judge until nothing waits."""
        # What an error of the store left in this worker's name; between rounds it holds nothing.
        self._jobs.give_back()
        while not self._stop.is_set() and (job := self._jobs.take()) is not None:
            try:
                self._judge(job)
                self._news.append(job.submission)
            except (PassingError, ChildCrashedError) as error:
                log.warning("submission %s waits: %s", job.submission.id, error)

    def _keep_up(self) -> None:
        """Make what readers want of what was judged since, and let one refused file go."""
        began = time.monotonic()
        news = [self._news.popleft() for _ in range(len(self._news))]
        if self._refresh is not None and news:
            for board in boards.boards():
                if board.id in {one.board for one in news} and not self._stop.is_set():
                    self._refresh(board)
        if self._sweeper is not None and (swept := self._sweeper.step()) is not None:
            log.info("the refused file %s is not kept any more", swept)
        # Under a steady load it leaves at least half of the time to the judging.
        self._stop.wait(time.monotonic() - began)

    def _judge(self, job: Job) -> None:
        """Judge one job, and record its end; one that cannot be judged now is put off.

        Raises:
            PassingError: it was put off.
            ChildCrashedError: its judge ended without an answer, for the first time.
        """
        submission = job.submission
        try:
            happened, columns, kept = self._judged(submission)
            self._jobs.finish(job, happened, kept_values=kept, **columns)
        except ConflictError as conflict:
            log.info("%s", conflict)
        except ChildCrashedError:
            if self._jobs.crash(job, CRASHED) is None:
                raise
            log.exception("submission %s on %s is not judged again", submission.id, submission.board)
        except LostFileError:
            log.exception("submission %s on %s failed", submission.id, submission.board)
            self._jobs.finish(job, [("failed", {"message": PUBLIC_FAILURE})])
        except Exception as error:
            if self._stop.is_set():
                self._jobs.give_back()
                return
            if not (is_passing(error) or isinstance(error, SQLAlchemyError)):
                log.exception("submission %s on %s: an error of the server", submission.id, submission.board)
            seconds = self._jobs.delay(job)
            raise PassingError(f"{error} It is tried again in {seconds:.0f} s.") from error

    def _judged(self, submission: Submission) -> tuple[list[Happened] | Decide, dict[str, Any], bytes | None]:
        """What happens to a submission, the columns that change with it, and its values per query."""
        try:
            board = boards.board(submission.board)
        except UnknownNameError as error:
            log.error("submission %s: %s", submission.id, error)
            return [("failed", {"message": BOARD_REMOVED})], {}, None
        problem = data.problem(board)
        if problem is not None:
            raise PassingError(f"submission {submission.id} waits: {problem}")
        path = self._files.local_copy(submission.sha256)
        try:
            self.load(board)
            judged, kept = judge_for(
                board,
                path,
                file_name=submission.file_name,
                form=submission.form,
                limits=self._limits,
                stopped=self._stop,
            )
        except (DatasetError, PassingError) as error:
            # What was prepared may be gone or damaged.
            self._prepared.discard(board.benchmark)
            raise PassingError(f"submission {submission.id} on {board.id}: {error}") from error
        columns = {"method": judged.method, "canonical": judged.canonical} if judged.method else {}
        return partial(self._ends, submission, judged), columns, kept

    def _ends(self, submission: Submission, judged: Judged, connection: sa.Connection) -> list[Happened]:
        """The events that a judged file's submission ends with."""
        findings = {"findings": judged.findings, "text": judged.text}
        if judged.outcome == "rejected":
            offered = with_offer(submission.board, submission.file_name, judged.findings)
            if offered is not None:
                findings = {"findings": offered[0], "text": offered[1]}
            more = {"explanation": judged.explanation} if judged.explanation else {}
            return [("rejected", {**findings, **more})]
        # A crash between the events of an earlier version of the server may have left the first.
        seen = submission.last("validated") is not None
        happened: list[Happened] = [] if seen else [("validated", {**findings, "claims": judged.claims})]
        happened.append(("scored", {"report": judged.report}))
        canonical = str(judged.canonical)
        off = self._store.kept_off(submission, canonical, connection)
        if off is not None:
            why = {"same_rankings": True, "hidden": True, "reason": off.why_hidden}
            return [*happened, ("superseded", {"by": off.id, **why})]
        same = same_rankings(self._store, submission, canonical, connection)
        if same is not None:
            return [*happened, ("superseded", {"by": same.id, "same_rankings": True})]
        if not self._store.reread(connection, submission).publish:
            return [*happened, ("private", {})]
        try:
            refuse_taken_name(self._store, submission, judged.method, connection)
            refuse_contradiction(submission, judged.method)
        except UploadRefusedError as error:
            return [*happened, ("private", {"reason": error.to_dict()})]
        return [*happened, ("published", {})]

    @contextmanager
    def _beating(self) -> Iterator[None]:
        """Show signs of life and look for those of others until the block ends, then leave."""
        try:
            with _beside(self._beat, self._lease_seconds / BEATS_A_LEASE):
                yield
        finally:
            try:
                self._jobs.leave()
            except (SubmissionStoreError, SQLAlchemyError) as error:
                log.warning("the worker cannot say that it leaves: %s", error)

    def _beat(self) -> None:
        about = {"host": socket.gethostname(), "process": os.getpid(), "version": package_version()}
        self._jobs.beat(about)
        for submission_id in self._jobs.take_back():
            log.warning("submission %s: its worker has stopped; it is judged again", submission_id)


def _repeat(action: Callable[[], object], seconds: float, ended: threading.Event) -> None:
    """Do something again and again, with a pause, until an event."""
    while True:
        try:
            action()
        except Exception:
            # A full disk or a locked database may pass; a loop that has ended would not come back.
            log.exception("the worker could not read or write the store or its files")
        if ended.wait(seconds):
            return


@contextmanager
def _beside(action: Callable[[], object], seconds: float) -> Iterator[None]:
    """Repeat something in a thread of its own until the block ends."""
    ended = threading.Event()
    thread = threading.Thread(target=_repeat, args=(action, seconds, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
