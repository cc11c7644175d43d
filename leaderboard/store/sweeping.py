"""Refused files are kept for days, not for ever; what they were refused for stays.

A file is deleted only under its lock and while its mark is committed. Who sends the same bytes again takes
that lock, wipes the mark away, and looks whether the file is there, in the transaction that records the
submission. So either that transaction is first, and the sweep sees that the file is needed; or the sweep
is first, and the sender's own copy is put back before anything is acknowledged. A crash after the deletion
leaves the mark, which says that the file may be gone. The lock is SQLite's write lock; PostgreSQL has one a
file. A file whose submission was refused for want of a quota, after it had been made durable, goes the same
way at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from leaderboard.errors import UploadRefusedError
from leaderboard.store.database import Database, take_turns, upsert
from leaderboard.store.files import FileStore
from leaderboard.store.schema import events, submissions, swept
from leaderboard.store.submission import State

REFUSED: tuple[State, ...] = ("rejected", "failed")
"""States in which a submission needs its file no more, after a while."""
_LOOK_AGAIN_SECONDS = 3600.0
_AT_ONCE = 1000
_MARK = sa.select(swept.c.sha256).where(swept.c.sha256 == sa.bindparam("of_file"))


def claim(connection: sa.Connection, sha256: str, put_back: Callable[[], object]) -> None:
    """Need a file from now on, within the transaction that records why.

    Args:
        connection: the transaction; it writes.
        sha256: of a file that was made durable before.
        put_back: makes it durable once more, for it may be gone.
    """
    take_turns(connection, sha256)
    if connection.execute(_MARK, {"of_file": sha256}).first() is not None:
        put_back()
        connection.execute(swept.delete().where(swept.c.sha256 == sha256))


def refuse_swept(connection: sa.Connection, sha256: str) -> None:
    """Refuse to judge a file again that is gone or going, within the transaction that would record it.

    Raises:
        UploadRefusedError: `file-removed`.
    """
    take_turns(connection, sha256)
    if connection.execute(sa.select(swept).where(swept.c.sha256 == sha256)).first() is not None:
        raise UploadRefusedError.of("file-removed")


def removed_at(database: Database, sha256: str) -> datetime | None:
    """When a refused file was removed, or is about to be; None where it is kept."""
    with database.read() as connection:
        found = connection.execute(sa.select(swept).where(swept.c.sha256 == sha256)).first()
    return None if found is None else found.at or datetime.now(UTC)


def kept_files(connection: sa.Connection) -> list[str]:
    """The hashes of all files that submissions name, without those that were or are being removed."""
    gone = sa.select(swept.c.sha256)
    named = sa.select(submissions.c.sha256).where(submissions.c.sha256.not_in(gone)).distinct()
    return sorted(connection.execute(named).scalars())


class Sweeper:
    """Removes refused files that no submission needs; several may do so at once.

    Args:
        database: of the store.
        files: the rank files.
        keep_for: how long a file is kept after the last thing that happened to a submission of it.
    """

    def __init__(self, database: Database, files: FileStore, keep_for: timedelta) -> None:
        """Remember them; nothing is looked for yet."""
        self._database = database
        self._files = files
        self._keep_for = keep_for
        self._found: list[str] = []
        self._look_at = time.monotonic()

    def step(self) -> str | None:
        """Remove one file whose time has come; such files are looked for once an hour.

        Returns:
            Its sha256, or None where none was removed.
        """
        if not self._found and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_AGAIN_SECONDS
            gone = sa.select(swept.c.sha256).where(swept.c.at.is_not(None))
            query = self._unneeded().where(submissions.c.sha256.not_in(gone)).limit(_AT_ONCE)
            with self._database.read() as connection:
                self._found = list(connection.execute(query).scalars())
        if not self._found:
            return None
        sha256 = self._found.pop()
        return sha256 if self.remove(sha256) else None

    def remove(self, sha256: str) -> bool:
        """Remove a file, unless somebody needs it.

        Returns:
            Whether it was removed.
        """
        return self._mark(sha256) and self._remove(sha256)

    def _mark(self, sha256: str) -> bool:
        """Say that a file may go, where nobody needs it."""
        with self._database.write() as connection:
            take_turns(connection, sha256)
            if not self._is_unneeded(connection, sha256):
                return False
            upsert(connection, swept, {"sha256": sha256, "at": None}, at=None)
        return True

    def _remove(self, sha256: str) -> bool:
        """Delete a file whose mark is still there."""
        mark = swept.c.sha256 == sha256
        with self._database.write() as connection:
            take_turns(connection, sha256)
            found = connection.execute(sa.select(swept).where(mark, swept.c.at.is_(None))).first()
            if found is None or not self._is_unneeded(connection, sha256):
                return False
            self._files.delete(sha256)
            connection.execute(swept.update().where(mark).values(at=datetime.now(UTC)))
        return True

    def _is_unneeded(self, connection: sa.Connection, sha256: str) -> bool:
        return connection.execute(self._unneeded().where(submissions.c.sha256 == sha256)).first() is not None

    def _unneeded(self) -> sa.Select[str]:
        """The hashes of files all of whose submissions were refused long enough ago."""
        is_needed = sa.case((submissions.c.state.in_(REFUSED), 0), else_=1)
        return (
            sa.select(submissions.c.sha256)
            .join(events, events.c.submission_id == submissions.c.id)
            .group_by(submissions.c.sha256)
            .having(
                sa.func.max(is_needed) == 0, sa.func.max(events.c.at) < datetime.now(UTC) - self._keep_for
            )
        )


class Unnamed(Sweeper):
    """Removes files that no submission names, or that were removed once and are claimed by nobody since.

    Args:
        database: of the store.
        files: the rank files.
    """

    def __init__(self, database: Database, files: FileStore) -> None:
        """Remember them."""
        super().__init__(database, files, timedelta())

    def _is_unneeded(self, connection: sa.Connection, sha256: str) -> bool:
        named = sa.select(submissions.c.id).where(submissions.c.sha256 == sha256).limit(1)
        marked = sa.select(swept.c.sha256).where(swept.c.sha256 == sha256)
        return any(
            (connection.execute(named).first() is None, connection.execute(marked).first() is not None)
        )
