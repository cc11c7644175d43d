"""One running leaderboard: store, files, intake and worker, put together for the API and the pages."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy.exc import SQLAlchemyError

from cir_metrics.catalogue import package_version
from leaderboard import boards
from leaderboard.boards import Board, data
from leaderboard.errors import FileStoreError, SubmissionStoreError
from leaderboard.identity.receipts import Receipt, sign, signing_key
from leaderboard.intake import Intake
from leaderboard.intake.quotas import Allowance, Quotas
from leaderboard.queue.jobs import LEASE_SECONDS
from leaderboard.queue.worker import Worker
from leaderboard.settings import Durability, Settings, in_space, lasts
from leaderboard.standings import Entry, shown, standings
from leaderboard.standings.tables import Tables
from leaderboard.store import Store
from leaderboard.store.files import FileStore, files_of
from leaderboard.store.submission import Submission
from leaderboard.store.sweeping import kept_files

log = logging.getLogger("leaderboard.server")

if TYPE_CHECKING:
    from leaderboard.inspection.differences import Compared
    from leaderboard.inspection.lists import Lists
    from leaderboard.inspection.numbers import GroupedNumbers
    from leaderboard.server.preparing import Preparing
    from leaderboard.store.hub_log import HubLog

_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Server:
    """The rooms of one leaderboard.

    Args:
        settings: where its state lies, and its limits.
        store: submissions and their log.
        files: what was sent.
        intake: the way in.
        worker: what judges; runs after `worker.start()`.
        key: what signs its receipts.
        quotas: how much may come in.
        tables: the boards' tables.
        log: commits what happens to the Hub; None where there is no such log, or another process does.
    """

    settings: Settings
    store: Store
    files: FileStore
    intake: Intake
    worker: Worker
    key: Ed25519PrivateKey
    quotas: Quotas
    tables: Tables
    log: HubLog | None = None

    @cached_property
    def lists(self) -> Lists:
        """The beginnings of the entries' rankings."""
        from leaderboard.inspection.lists import Lists

        return Lists(self.store)

    @cached_property
    def numbers(self) -> GroupedNumbers:
        """The entries' numbers by group."""
        from leaderboard.inspection.numbers import GroupedNumbers

        return GroupedNumbers(self.store, self.lists)

    @cached_property
    def preparing(self) -> Preparing | None:
        """What is prepared when the server starts, or None where nothing is; begins with its `start()`."""
        if not self.settings.prepare:
            return None
        from leaderboard.server.preparing import Preparing

        return Preparing(self.settings.prepare, self.settings.home)

    @cached_property
    def compared(self) -> Compared:
        """Entries side by side."""
        from leaderboard.inspection.differences import Compared

        return Compared(self.numbers)

    @classmethod
    def open(cls, settings: Settings, *, leads: bool = False) -> Server:
        """Open the state in `settings.home`, or make it.

        Args:
            settings: where it lies.
            leads: whether this process is the leaderboard's own: where there is a log on the Hub, it fills
                the store from it, and commits what happens until `close`.

        Raises:
            SubmissionStoreError: the folder cannot be made or written, or a newer version wrote the store.
            BoardError: the home's folder of boards cannot be read.
            FileStoreError: the place of the rank files cannot be used.
            ServeError: the key that signs receipts cannot be used.
        """
        try:
            settings.home.mkdir(parents=True, exist_ok=True)
            files = files_of(settings)
            files.sweep()
        except OSError as error:
            raise SubmissionStoreError(
                f"{settings.home}: cannot be used as the leaderboard's home: {error.strerror}. "
                "Fix: name a folder that can be written with --home or CIR_LEADERBOARD_HOME."
            ) from error
        boards.use(settings.home)
        store, hub_log = Store.of(settings, fills=leads), None
        if settings.log and leads:
            from leaderboard.store.hub_log import HubLog

            hub_log = HubLog.of(settings, store)
            hub_log.open()
        key = signing_key(settings.signing_key, settings.home)
        quotas = Quotas(store, Allowance(settings.a_day, settings.in_all, settings.uploads_an_hour))
        counted = None if settings.accounts == "local" else quotas
        intake = Intake(settings, store, files, data.problem, counted)
        tables = Tables(store, settings.max_upload_bytes)
        worker = Worker(
            files,
            store,
            refresh=tables.make_groups,
            refused_days=settings.refused_days,
        )
        if hub_log is not None:
            hub_log.start()
        return cls(settings, store, files, intake, worker, key, quotas, tables, hub_log)

    def close(self) -> None:
        """Stop the worker after the submission in hand, and give the database back."""
        self.worker.stop()
        if self.preparing is not None:
            self.preparing.stop()
        self.tables.close()
        if "compared" in vars(self):
            self.compared.close()
        if self.log is not None:
            self.log.stop()
        self.store.close()

    @property
    def lasts(self) -> bool:
        """Whether entries are there after a restart: not on the disk of a Space that is lost then."""
        return not in_space() or lasts(os.environ)

    @property
    def alarms(self) -> list[str]:
        """What everybody must know who looks at this leaderboard, or starts it."""
        found = []
        if not self.lasts:
            found.append(
                "Entries end with the next restart: the disk of this server is lost then, and it keeps no "
                "log. Its organisers set CIR_LEADERBOARD_LOG."
            )
        if self.log is not None and self.log.fails:
            found.append(
                "The log's repository takes no commits. What is sent now stands on this server's disk alone "
                "until it does; its organisers find the reason in the server's output."
            )
        if self.store.reads_only:
            found.append(
                "This server reads only, since another one writes this leaderboard's log. Files are not "
                "taken here; its organisers let one replica run."
            )
        return found

    @property
    def awaited(self) -> HubLog | None:
        """The log whose commit an upload's answer waits for, where the settings ask for it."""
        return self.log if self.settings.received == "committed" else None

    def durability(self, submission: Submission) -> Durability:
        """How safe a submission is as it stands."""
        if self.log is None:
            return "journalled"
        self.log.news()
        return self.log.committed(submission.id)

    def receipt(self, submission: Submission) -> Receipt:
        """What the sender keeps as a proof; the same submission has the same receipt each time."""
        return sign(
            self.key,
            id=submission.id,
            board=submission.board,
            sha256=submission.sha256,
            size=submission.size,
            received_at=submission.received_at.isoformat(),
            status_url=f"{self.settings.url}/api/submissions/{submission.id}",
            server=self.settings.name,
        )

    def health(self) -> dict[str, Any]:
        """How the server is: its version, what waits and since when, who judges, how much space is free."""
        condition, now = self.store.condition(), datetime.now(UTC)
        free = shutil.disk_usage(self.settings.home).free
        for one in condition["workers"]:
            # A worker that beat while the clock was wrong has shown nothing since.
            one["alive"] = abs(now - one["seen_at"]) < timedelta(seconds=LEASE_SECONDS)
        return {
            "status": "ok" if free > self.settings.max_upload_bytes else "disk-full",
            "version": package_version(),
            "boards": len(boards.ids()),
            "wrong_boards": list(boards.wrong_files()),
            "max_upload_bytes": self.settings.max_upload_bytes,
            "lost_files": sorted(self.files.lost),
            "preparing": [] if self.preparing is None else self.preparing.view(),
            "reads_only": self.store.reads_only,
            "lasts": self.lasts,
            "alarms": self.alarms,
            **condition,
            "free_bytes": free,
        }

    def look_over(self, stopped: threading.Event) -> None:
        """Look whether the rank files are there and whole, for `health`.

        Args:
            stopped: ends the look when it is set.
        """
        try:
            with self.store.database.read() as connection:
                wanted = kept_files(connection)
            self.files.look_over(wanted, stopped)
        except (SQLAlchemyError, SubmissionStoreError, FileStoreError):
            log.exception("the rank files cannot be looked over now")
        if self.files.lost:
            log.error("rank files are missing or damaged: %s", ", ".join(sorted(self.files.lost)))

    def entries(self, board: Board) -> list[Entry]:
        """A board's table."""
        return standings(board, shown(board, self.store.published(board.id)), data.current_keys(board))

    def equals(self, submission: Submission) -> list[str]:
        """The ids of entries on a submission's board that rank the same."""
        return [one.id for one in self.store.equals(submission)]

    def supersede_baselines(self, baseline: Submission) -> list[Submission]:
        """Take earlier baselines of the same method off the board: a newer file stands in their place.

        Their files and their logs stay.

        Returns:
            What was taken off.
        """
        name = (baseline.method or {}).get("name")
        earlier = [
            one
            for one in self.store.published(baseline.board)
            if one.baseline and one.id != baseline.id and (one.method or {}).get("name") == name
        ]
        return [self.store.append(one, [("superseded", {"by": baseline.id})]) for one in earlier]

    def wait(self, submission: Submission, seconds: float) -> Submission:
        """The submission when it is finished, or as it stands after `seconds`."""
        until = time.monotonic() + seconds
        while not submission.finished and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
            submission = self.store.submission(submission.id) or submission
        return submission
