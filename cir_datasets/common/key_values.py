"""A cache of small values by key, in one file of SQLite: what has cost a model or a disk is not made twice.

What `put` has returned from outlives the process, whatever ends it. Several processes may use one file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from cir_datasets.common.locks import has_locks
from cir_metrics.errors import CirError

_WAIT_SECONDS = 300.0
"""Until another process has written."""
_TABLE = "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"


class KeyValues:
    """Values by key, on disk. Threads may share it, and a copy of the process that was forked.

    Args:
        file: where they lie; made, with its folder, by the first `put`.
        error: makes the error of a message.

    Example:
        >>> import tempfile
        >>> from cir_metrics.errors import CirError
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cache = KeyValues(Path(folder, "answers.sqlite"), CirError)
        ...     cache.put({"question": b"answer"})
        ...     cache.get("question"), cache.get("other")
        (b'answer', None)
    """

    def __init__(self, file: Path, error: Callable[[str], CirError]) -> None:
        """See the class."""
        self.file = file
        self._error = error
        self._lock = threading.Lock()
        self._waiting_lock = threading.Lock()
        self._waiting: dict[bytes, bytes] = {}
        self._opened: tuple[int, sqlite3.Connection] | None = None

    def get(self, key: str) -> bytes | None:
        """The value of a key, or None.

        Raises:
            CirError: of `error`: the file cannot be read or is damaged.
        """
        with self._connected("read") as connection:
            if connection is None:
                return None
            row = connection.execute("SELECT value FROM entries WHERE key = ?", (_bytes(key),)).fetchone()
            return None if row is None else bytes(row[0])

    def put(self, values: Mapping[str, bytes]) -> None:
        """Keep values, all of them or, where the process ends meanwhile, none.

        What several threads bring is written together: to have it on the disk takes milliseconds each time.

        Raises:
            CirError: of `error`: the file cannot be written or is damaged.
        """
        with self._waiting_lock:
            self._waiting.update({_bytes(key): value for key, value in values.items()})
        with self._connected("written") as connection:
            with self._waiting_lock:
                rows, self._waiting = self._waiting, {}
            try:
                if connection is not None and rows:
                    connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", rows.items())
                    connection.commit()
            except sqlite3.Error:
                # Those of other threads are theirs to try again, and to hear of.
                with self._waiting_lock:
                    self._waiting = rows | self._waiting
                raise

    @contextlib.contextmanager
    def _connected(self, what: str) -> Iterator[sqlite3.Connection | None]:
        """The file, opened; None where it is to be read and is not there."""
        try:
            with self._lock:
                connection = self._connection(writes=what == "written")
                if connection is None:
                    yield None
                    return
                with connection:
                    yield connection
        except (OSError, sqlite3.Error) as error:
            damaged = getattr(error, "sqlite_errorname", "") in ("SQLITE_CORRUPT", "SQLITE_NOTADB")
            why = (
                "it is damaged" if damaged else f"cannot be {what}: {getattr(error, 'strerror', 0) or error}"
            )
            fix = "remove it" if damaged else "make room, or set CIR_CACHE_HOME to a folder of yours"
            raise self._error(f"{self.file}: {why}. Fix: {fix}.") from error

    def _connection(self, *, writes: bool) -> sqlite3.Connection | None:
        there = self.file.exists()
        if there and self._opened is not None and self._opened[0] == os.getpid():
            return self._opened[1]
        self._opened = None
        if not (there or writes):
            return None
        folder = self.file.parent
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            # Where a file system has no locks, SQLite would wait for them in vain.
            how = "mode=rwc" if has_locks(folder) else "mode=rwc&nolock=1"
        else:
            how = "mode=ro"
        name = f"file:{quote(os.fsencode(self.file.absolute()))}?{how}"
        connection = sqlite3.connect(name, _WAIT_SECONDS, uri=True, check_same_thread=False)
        if how != "mode=ro":
            # Not a log of writes ahead: machines that share a disk would not see one another's.
            connection.execute("PRAGMA journal_mode=TRUNCATE").fetchone()
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(_TABLE)
        self._opened = os.getpid(), connection
        return connection


def _bytes(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")
