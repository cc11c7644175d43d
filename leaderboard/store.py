"""The store: submissions and their append-only event log, through SQLAlchemy.

SQLite by default (write-ahead log, every commit synced to the disk before it is acknowledged); the tables and
queries are plain enough for PostgreSQL to take its place by URL.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event as sa_event
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError

from cir_metrics.errors import without_secret_cause
from leaderboard import schema
from leaderboard.errors import ConflictError, SubmissionStoreError
from leaderboard.schema import events, submissions
from leaderboard.submission import TERMINAL, Event, EventKind, Submission

_BUSY_TIMEOUT_MS = 30_000


class Store:
    """The leaderboard's memory.

    Args:
        url: SQLAlchemy's URL, `sqlite:////home/me/leaderboard.sqlite`; the folder must exist.

    Raises:
        SubmissionStoreError: the database cannot be opened, or a newer version of this package wrote it.
    """

    def __init__(self, url: str) -> None:
        """Open the database and make the tables that it lacks."""
        try:
            self._engine = sa.create_engine(url)
        except ArgumentError:
            # Neither the address nor the reason is shown: they may hold a password.
            raise SubmissionStoreError(
                "the address of the store is not one that SQLAlchemy can read. Fix: write "
                "sqlite:////FOLDER/leaderboard.sqlite or postgresql://USER:PASSWORD@HOST/DATABASE."
            ) from None
        except ImportError as error:
            raise SubmissionStoreError(
                f"the store needs {error.name}, which is not installed. Fix: pip install {error.name}"
            ) from error
        if self._engine.dialect.name == "sqlite":
            _set_up_sqlite(self._engine)
        try:
            with self._write() as connection:
                schema.metadata.create_all(connection)
                _check_version(connection, url)
        except DBAPIError as error:
            raise SubmissionStoreError(
                f"{url}: cannot open the store: {error.orig}. Fix: check that the folder exists and can be "
                "written, or name another with --home."
            ) from without_secret_cause(error)

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def receive(
        self,
        *,
        board: str,
        sha256: str,
        size: int,
        file_name: str,
        submitter: str = "",
        form: Mapping[str, Any] | None = None,
        baseline: bool = False,
    ) -> tuple[Submission, bool]:
        """Record a durable file as a submission, unless the same file is there already.

        The same bytes for the same board give the submission that exists, except where that one was rejected,
        failed or was superseded: then a new attempt begins, for what was sent beside the file may have
        changed.

        Returns:
            The submission, and whether it is new.
        """
        with self._write() as connection:
            latest = self._latest_attempt(connection, board, sha256)
            retry = latest is not None and latest.state in ("rejected", "failed", "superseded")
            if latest is not None and not (retry and _differs(latest, form, submitter)):
                return latest, False
            now = datetime.now(UTC)
            new_id = secrets.token_hex(6)
            connection.execute(
                submissions.insert().values(
                    id=new_id,
                    board=board,
                    sha256=sha256,
                    attempt=1 if latest is None else latest.attempt + 1,
                    size=size,
                    file_name=file_name,
                    received_at=now,
                    submitter=submitter,
                    form=dict(form or {}),
                    method=None,
                    baseline=baseline,
                )
            )
            _insert_event(connection, new_id, 1, "received", {"sha256": sha256, "size": size}, now)
            return self._read(connection, [new_id])[0], True

    def append(
        self,
        submission: Submission,
        happened: Sequence[tuple[EventKind, Mapping[str, Any]]],
        *,
        method: Mapping[str, Any] | None = None,
    ) -> Submission:
        """Append events to a submission's log, all or none.

        Args:
            submission: as it was read; the new events follow its last one.
            happened: kind and payload of each event, in order.
            method: the method's fields as shown, where they are known now.

        Raises:
            ConflictError: someone else has appended since `submission` was read.
        """
        now = datetime.now(UTC)
        first = submission.events[-1].sequence + 1
        try:
            with self._write() as connection:
                for sequence, (kind, payload) in enumerate(happened, start=first):
                    _insert_event(connection, submission.id, sequence, kind, payload, now)
                if method is not None:
                    mine = submissions.c.id == submission.id
                    connection.execute(submissions.update().where(mine).values(method=dict(method)))
                return self._read(connection, [submission.id])[0]
        except IntegrityError as error:
            raise ConflictError(
                f"submission {submission.id}: event {first} has been recorded by another process"
            ) from error

    def submission(self, submission_id: str) -> Submission | None:
        """The submission of that id, or None."""
        with self._engine.connect() as connection:
            found = self._read(connection, [submission_id])
        return found[0] if found else None

    def unfinished(self) -> list[Submission]:
        """Submissions in which something is left to do, first come first."""
        ended = sa.select(events.c.submission_id).where(events.c.kind.in_(TERMINAL))
        query = sa.select(submissions.c.id).where(submissions.c.id.not_in(ended))
        return self._of(query)

    def published(self, board: str) -> list[Submission]:
        """What stands on a board, first come first."""
        mine = sa.select(submissions.c.id).where(submissions.c.board == board)
        shown = sa.select(events.c.submission_id).where(events.c.kind == "published")
        return [one for one in self._of(mine.where(submissions.c.id.in_(shown))) if one.state == "published"]

    def count_published(self) -> dict[str, int]:
        """How many entries stand on each board that has any."""
        gone = sa.select(events.c.submission_id).where(events.c.kind == "superseded")
        query = (
            sa.select(submissions.c.board, sa.func.count(sa.distinct(submissions.c.id)))
            .join(events, events.c.submission_id == submissions.c.id)
            .where(events.c.kind == "published", submissions.c.id.not_in(gone))
            .group_by(submissions.c.board)
        )
        with self._engine.connect() as connection:
            return {board: int(number) for board, number in connection.execute(query)}

    def _of(self, query: sa.Select[str]) -> list[Submission]:
        with self._engine.connect() as connection:
            return self._read(connection, query)

    def _latest_attempt(self, connection: sa.Connection, board: str, sha256: str) -> Submission | None:
        query = (
            sa.select(submissions.c.id)
            .where(submissions.c.board == board, submissions.c.sha256 == sha256)
            .order_by(submissions.c.attempt.desc())
            .limit(1)
        )
        found = connection.execute(query).scalar_one_or_none()
        return None if found is None else self._read(connection, [found])[0]

    def _read(self, connection: sa.Connection, wanted: Sequence[str] | sa.Select[str]) -> list[Submission]:
        logs: dict[str, list[Event]] = defaultdict(list)
        query = sa.select(events).where(events.c.submission_id.in_(wanted)).order_by(events.c.sequence)
        for row in connection.execute(query):
            logs[row.submission_id].append(Event(row.sequence, row.kind, row.at, row.payload))
        chosen = sa.select(submissions).where(submissions.c.id.in_(wanted))
        ordered = chosen.order_by(submissions.c.received_at, submissions.c.id)
        return [Submission(**row._mapping, events=tuple(logs[row.id])) for row in connection.execute(ordered)]

    def _write(self) -> Any:
        """A transaction that holds the write lock from its first statement."""
        return self._engine.execution_options(cir_write=True).begin()


def _differs(earlier: Submission, form: Mapping[str, Any] | None, submitter: str) -> bool:
    """Whether sending the file again can end otherwise than before."""
    if earlier.state in ("failed", "superseded"):
        return True
    return (dict(form or {}), submitter) != (earlier.form, earlier.submitter)


def _insert_event(
    connection: sa.Connection,
    submission_id: str,
    sequence: int,
    kind: EventKind,
    payload: Mapping[str, Any],
    at: datetime,
) -> None:
    values = {"submission_id": submission_id, "sequence": sequence, "kind": kind, "at": at}
    connection.execute(events.insert().values(**values, payload=dict(payload)))


def _check_version(connection: sa.Connection, url: str) -> None:
    query = sa.select(schema.about.c.value).where(schema.about.c.name == "schema_version")
    written = connection.execute(query).scalar_one_or_none()
    if written is None:
        row = {"name": "schema_version", "value": str(schema.SCHEMA_VERSION)}
        connection.execute(schema.about.insert().values(**row))
    elif int(written) > schema.SCHEMA_VERSION:
        raise SubmissionStoreError(
            f"{url}: the store has schema version {written}, this package knows {schema.SCHEMA_VERSION}. "
            "Fix: upgrade with  pip install --upgrade cir-benchmarks  or name another folder with --home."
        )


def _set_up_sqlite(engine: sa.Engine) -> None:
    """Durable commits, readers beside one writer, and the write lock taken when a write transaction begins.

    SQLAlchemy's own way of beginning lets two writers read first and deadlock afterwards.
    """

    @sa_event.listens_for(engine, "connect")
    def on_connect(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @sa_event.listens_for(engine, "begin")
    def on_begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("cir_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
