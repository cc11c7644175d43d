"""The worker: takes submissions through judging, and leaves none stuck.

The store is the queue: what has no terminal event is taken up, at start-up too. Trouble of the machine that
may pass leaves a submission waiting, for longer each time; nothing that one submission does ends the worker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Set
from typing import Any

import cir_datasets
from cir_datasets.errors import DatasetError
from cir_metrics.errors import UnknownNameError
from leaderboard import boards, data
from leaderboard.boards import Board
from leaderboard.errors import (
    ChildCrashedError,
    ConflictError,
    PassingError,
    is_passing,
)
from leaderboard.queue.child import Judged, judge
from leaderboard.store import Store
from leaderboard.store_files import FileStore
from leaderboard.submission import EventKind, Submission

log = logging.getLogger("leaderboard.worker")

PUBLIC_FAILURE = (
    "The server could not judge this file; its organisers find the reason in the log. The file is not at "
    "fault: send it again later."
)
BOARD_REMOVED = "The board was removed from this server before the file was judged. Send it to another board."

_LOOK_AGAIN_SECONDS = 5.0
"""How often the store is asked for work that nobody announced (another process put it there)."""
_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 300.0
_CRASHES = 2
"""A submission that has ended so many processes is not tried again."""

Happened = list[tuple[EventKind, Mapping[str, Any]]]


class Worker:
    """Judges submissions one after another, in the order in which they came.

    Args:
        files: the rank files.
        store: where the submissions are.
    """

    def __init__(self, files: FileStore, store: Store) -> None:
        """Remember the rooms; nothing runs before `start`."""
        self._files = files
        self._store = store
        self._prepared: set[str] = set()
        self._attempts = Attempts()
        self._work = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin in the background, with what an earlier run left unfinished."""
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End at once; what is left, the submission in hand too, is taken up at the next start."""
        self._stop.set()
        self._work.set()
        if self._thread is not None:
            self._thread.join()

    def wake(self) -> None:
        """Say that there is work."""
        self._work.set()

    def load(self, board: Board) -> None:
        """Prepare what a board ranks, so that what is wrong with its data is said before a file is taken.

        Raises:
            DatasetError: its data cannot be read.
        """
        if board.benchmark not in self._prepared:
            cir_datasets.prepare(board.benchmark)
            self._prepared.add(board.benchmark)

    def process(self, submission: Submission) -> Submission:
        """Take one submission to its end, and give it back as it stands then.

        Another process may do the same at the same time: the first to record an event goes on, and this one
        gives back what the store holds. An error that is neither passing nor a crash ends in the event
        `failed`, with a public message that gives nothing away; the traceback goes to the server's log.

        Raises:
            PassingError: the machine is in trouble, or the board's data is gone; the submission waits.
            ChildCrashedError: judging ended without an answer for the first time; the submission waits.
        """
        if submission.finished:
            return submission
        try:
            happened, method = self._judged(submission)
            return self._store.append(submission, happened, method=method)
        except ConflictError as conflict:
            log.info("%s", conflict)
            return self._store.submission(submission.id) or submission
        except ChildCrashedError:
            if self._attempts.crashed(submission.id) < _CRASHES:
                raise
            log.exception("submission %s on %s is not judged again", submission.id, submission.board)
        except Exception as error:
            if isinstance(error, PassingError):
                raise
            if is_passing(error):
                raise PassingError(f"submission {submission.id} on {submission.board}: {error}") from error
            log.exception("submission %s on %s failed", submission.id, submission.board)
        return self._store.append(submission, [("failed", {"message": PUBLIC_FAILURE})])

    def _judged(self, submission: Submission) -> tuple[Happened, dict[str, Any] | None]:
        """What happens to a submission, and its method as shown."""
        try:
            board = boards.board(submission.board)
        except UnknownNameError as error:
            log.error("submission %s: %s", submission.id, error)
            return [("failed", {"message": BOARD_REMOVED})], None
        problem = data.problem(board)
        if problem is not None:
            raise PassingError(f"submission {submission.id} waits: {problem}")
        path = self._files.local_copy(submission.sha256)
        try:
            self.load(board)
            judged = judge(
                path,
                board.benchmark,
                file_name=submission.file_name,
                form=submission.form,
                stopped=self._stop,
            )
        except (DatasetError, PassingError) as error:
            # What was prepared may be gone or damaged.
            self._prepared.discard(board.benchmark)
            raise PassingError(f"submission {submission.id} on {board.id}: {error}") from error
        return _events(submission, judged), judged.method

    def _run(self) -> None:
        while not self._stop.is_set():
            self._work.clear()
            try:
                self._round()
            except Exception:
                # A full disk or a locked database may pass; a worker that has ended would not come back.
                log.exception("the worker could not read or write the store")
            self._work.wait(timeout=self._attempts.pause(_LOOK_AGAIN_SECONDS))

    def _round(self) -> None:
        waiting = self._store.unfinished()
        self._attempts.keep({submission.id for submission in waiting})
        for submission in waiting:
            if self._stop.is_set():
                return
            if self._attempts.due(submission.id):
                self._take(submission)

    def _take(self, submission: Submission) -> None:
        """Process one submission, whatever comes of it."""
        try:
            self.process(submission)
        except Exception as error:
            seconds = self._attempts.later(submission.id)
            passing = isinstance(error, PassingError | ChildCrashedError)
            # Of what is not foreseen the log shows where it came from.
            log.warning(
                "submission %s waits %.0f s: %s",
                submission.id,
                seconds,
                error,
                exc_info=None if passing else error,
            )


class Attempts:
    """How often submissions were tried without an end, and when each is tried again; kept in memory."""

    def __init__(self) -> None:
        """Nothing was tried yet."""
        self._crashes: dict[str, int] = {}
        self._waits: dict[str, float] = {}
        self._due: dict[str, float] = {}

    def crashed(self, submission_id: str) -> int:
        """Count a crash; how many there were."""
        self._crashes[submission_id] = self._crashes.get(submission_id, 0) + 1
        return self._crashes[submission_id]

    def later(self, submission_id: str) -> float:
        """Put a submission off, twice as long each time; the seconds."""
        wait = min(2 * self._waits.get(submission_id, _FIRST_WAIT_SECONDS / 2), _LONGEST_WAIT_SECONDS)
        self._waits[submission_id] = wait
        self._due[submission_id] = time.monotonic() + wait
        return wait

    def due(self, submission_id: str) -> bool:
        """Whether it is time to try a submission."""
        return time.monotonic() >= self._due.get(submission_id, 0.0)

    def pause(self, longest: float) -> float:
        """Seconds until the next submission is due, at most so many."""
        return max(0.0, min([longest, *(due - time.monotonic() for due in self._due.values())]))

    def keep(self, waiting: Set[str]) -> None:
        """Forget all submissions but those that wait for their end."""
        for kept in (self._crashes, self._waits, self._due):
            for ended in kept.keys() - waiting:
                del kept[ended]


def _events(submission: Submission, judged: Judged) -> Happened:
    findings = {"findings": judged.findings, "text": judged.text}
    if judged.outcome == "rejected":
        return [("rejected", findings)]
    # A crash between the events of an earlier version of the server may have left the first.
    validated: Happened = [] if submission.last("validated") is not None else [("validated", findings)]
    return [*validated, ("scored", {"report": judged.report}), ("published", {})]
