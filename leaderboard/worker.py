"""The worker: takes submissions through validation and scoring, and leaves none stuck.

The store is the queue: what has no terminal event is taken up, at start-up too. An unexpected error ends in
the event `failed` with a public message that gives nothing away; the traceback goes to the server's log.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.data import LoadedBenchmarks
from leaderboard.errors import ConflictError, FileStoreError
from leaderboard.judging import Rejected, Validated, judge_file, score_file
from leaderboard.store import Store
from leaderboard.store_files import FileStore
from leaderboard.submission import EventKind, Submission

log = logging.getLogger("leaderboard.worker")

PUBLIC_FAILURE = (
    "The server could not judge this file; its organisers find the reason in the log. The file is not at "
    "fault: send it again later."
)

_LOOK_AGAIN_SECONDS = 5.0
"""How often the store is asked for work that nobody announced (another process put it there)."""


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
        self._benchmarks = LoadedBenchmarks()
        self._work = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lane = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")

    def start(self) -> None:
        """Begin in the background, with what an earlier run left unfinished."""
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the submission in hand; what is left is taken up at the next start."""
        self._stop.set()
        self._work.set()
        if self._thread is not None:
            self._thread.join()
        self._lane.shutdown()

    def wake(self) -> None:
        """Say that there is work."""
        self._work.set()

    def load(self, board: Board) -> None:
        """Load what a board ranks, so that what is wrong with its data is said before a file is taken.

        Raises:
            DatasetError: its data cannot be read.
        """
        self._benchmarks.of(board)

    def process(self, submission: Submission) -> Submission:
        """Take one submission to its end, and give it back as it stands then.

        Another process may do the same at the same time: the first to record an event goes on, and this one
        gives back what the store holds.
        """
        try:
            return self._process(submission)
        except ConflictError as conflict:
            log.info("%s", conflict)
            return self._store.submission(submission.id) or submission

    def _process(self, submission: Submission) -> Submission:
        if submission.finished:
            return submission
        board = boards.board(submission.board)

        def judge() -> Rejected | Validated:
            path = self._files.local_copy(submission.sha256)
            return judge_file(path, self._benchmarks.of(board), submission)

        judged, failed = self._attempt(submission, judge)
        if failed is not None:
            return failed
        if isinstance(judged, Rejected):
            return self._append(submission, "rejected", judged.payload)
        if not isinstance(judged, Validated):
            return submission
        if submission.last("validated") is None:
            submission = self._append(submission, "validated", judged.payload, method=judged.method)
        report, failed = self._attempt(submission, lambda: score_file(judged, self._benchmarks.of(board)))
        if failed is not None:
            return failed
        happened: list[tuple[EventKind, Mapping[str, Any]]] = [
            ("scored", {"report": report}),
            ("published", {}),
        ]
        return self._store.append(submission, happened)

    def _attempt(self, submission: Submission, step: Callable[[], Any]) -> tuple[Any, Submission | None]:
        """Run a step in the judging lane; where it raises, record `failed` and give that back."""
        done = self._lane.submit(step)
        error = done.exception()
        if error is None:
            return done.result(), None
        if isinstance(error, FileStoreError):
            raise error  # it may pass, and the submission waits
        log.error("submission %s on %s failed", submission.id, submission.board, exc_info=error)
        return None, self._append(submission, "failed", {"message": PUBLIC_FAILURE})

    def _append(
        self,
        submission: Submission,
        kind: EventKind,
        payload: Mapping[str, Any],
        method: Mapping[str, Any] | None = None,
    ) -> Submission:
        return self._store.append(submission, [(kind, payload)], method=method)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._work.clear()
            try:
                self._round()
            except (SQLAlchemyError, OSError, FileStoreError):
                # A full disk or a locked database may pass; a worker that has ended would not come back.
                log.exception("the worker could not read or write the store")
            self._work.wait(timeout=_LOOK_AGAIN_SECONDS)

    def _round(self) -> None:
        for submission in self._store.unfinished():
            if self._stop.is_set():
                return
            self.process(submission)
