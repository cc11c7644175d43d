"""The database below the store: SQLite or PostgreSQL, opened, checked, and brought to the newest schema."""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event as sa_event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from cir_datasets.errors import install_lines, upgrade_lines, without_secret_cause
from leaderboard.errors import SubmissionStoreError
from leaderboard.store import schema
from leaderboard.store.submission import name_key

if TYPE_CHECKING:
    from tenacity import Retrying

    from leaderboard.settings import Settings

log = logging.getLogger("leaderboard.store")

_T = TypeVar("_T")

_RESTORE = (
    "put a backup in its place (cir leaderboard backup makes them), or move it away and run  "
    "cir leaderboard rebuild."
)
# Called so since 0.1.0, which refuses a database whose version it does not know.
_VERSION = "alembic_version"
_BUSY_TIMEOUT_MS = 30_000
_MIGRATION_LOCK = 7_220_361
"""PostgreSQL's advisory lock of a migration: two servers that start at once take turns."""
_BOARD_LOCKS = 7_220_362
"""Seed of the advisory locks of boards."""


class Database:
    """Connections to the store's database.

    Args:
        url: SQLAlchemy's URL, `sqlite:////home/me/leaderboard.sqlite` or `postgresql://USER@HOST/NAME`; a
            folder must exist.
        has_files: says whether rank files lie where this store's files lie. A new database beside them is
            refused: theirs was lost, or the address is wrong.

    Raises:
        SubmissionStoreError: the database cannot be opened or is damaged, or a newer version of this package
            wrote it.
    """

    def __init__(self, url: str, has_files: Callable[[], bool] = lambda: False) -> None:
        """Open it, and make or migrate its tables."""
        try:
            self.engine = sa.create_engine(
                url, hide_parameters=True, pool_pre_ping=True, json_deserializer=_json_of
            )
        except (ArgumentError, NoSuchModuleError):
            # Neither the address nor the reason is shown: they may hold a password.
            raise SubmissionStoreError(
                "the address of the store is not one that SQLAlchemy can read. Fix: write "
                "sqlite:////FOLDER/leaderboard.sqlite or postgresql://USER:PASSWORD@HOST/DATABASE."
            ) from None
        except ImportError as error:
            raise SubmissionStoreError(
                f"the store needs {error.name}, which is not installed. Fix: {install_lines('server')}."
            ) from error
        self.dialect = self.engine.dialect.name
        self._readers = self.engine
        if self.dialect == "postgresql":
            # SQLite's transactions are so anyway; PostgreSQL's see anew with every statement by default.
            self._readers = self.engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        self.shown = _without_secrets(self.engine.url)
        if self.dialect == "sqlite":
            _set_up_sqlite(self.engine)
        self._turn: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if self.dialect == "sqlite":
            # Of SQLite's writers there is one at a time; those that wait in it sleep, and look again.
            self._turn = threading.RLock()
        self._line = threading.Lock()
        self._waiting: list[tuple[Callable[[sa.Connection], Any], Future[Any]]] = []
        self._opened: tuple[int, int] | None = None
        try:
            self._prepare(has_files)
        except DBAPIError as error:
            raise SubmissionStoreError(self._reason(error)) from without_secret_cause(error)
        self._opened = self._file()

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()

    @contextlib.contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A transaction that reads; all its statements see the database as it stood at the first.

        Raises:
            SubmissionStoreError: the database's file is not the one that was opened.
        """
        self._refuse_another_file()
        with self._readers.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction that writes; on SQLite it holds the write lock from its first statement.

        Raises:
            SubmissionStoreError: the database's file is not the one that was opened. What was written may be
                lost with it: nobody may be told that it was done.
        """
        self._refuse_another_file()
        engine = self.engine.execution_options(cir_write=True)
        with self._turn, contextlib.ExitStack() as stack:
            for attempt in self._while_invalidated():
                with attempt:
                    connection = stack.enter_context(engine.begin())
            yield connection
        self._refuse_another_file()

    def together(self, work: Callable[[sa.Connection], _T]) -> _T:
        """What some work returns that is done in a transaction that writes; it is durable then.

        On SQLite those who wait for their turn share the next transaction, and the one time that the disk
        takes for it: work may be done again, where that of another has failed. PostgreSQL does so by itself.
        """
        if self.dialect != "sqlite":
            with self.write() as connection:
                return work(connection)
        mine: Future[_T] = Future()
        with self._line:
            self._waiting.append((work, mine))
        with self._turn:
            if not mine.done():
                with self._line:
                    turns, self._waiting = self._waiting, []
                try:
                    with self.write() as connection:
                        done = [one(connection) for one, _ in turns]
                except BaseException:
                    for _, answer in turns:
                        answer.cancel()
                    if len(turns) == 1:
                        raise
                else:
                    for (_, answer), value in zip(turns, done, strict=True):
                        answer.set_result(value)
        if mine.cancelled():  # whose work has failed is not known: each is done alone
            with self.write() as connection:
                return work(connection)
        return mine.result()

    def _while_invalidated(self) -> Retrying:
        """Attempts at a transaction that writes, where connections from a time without writing are left."""
        from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_fixed

        return Retrying(
            retry=retry_if_exception(lambda error: getattr(error, "connection_invalidated", False)),
            # One connection that cannot write keeps its whole process from it: they share the log's index.
            before_sleep=lambda _: self.engine.dispose(),
            stop=stop_after_attempt(4),
            wait=wait_fixed(0.1),
            reraise=True,
        )

    def _refuse_another_file(self) -> None:
        """Connections that are open would go on in a file that has no name any more."""
        if self._opened is not None and self._file() != self._opened:
            raise SubmissionStoreError(
                f"{self.shown}: the file was removed, emptied or replaced while it was in use. Fix: stop the "
                f"server and its workers, {_RESTORE}"
            )

    def _file(self) -> tuple[int, int] | None:
        """Which file the database is, where it is one that holds something.

        It is not opened to look: SQLite's locks end when a process closes the file anywhere.
        """
        place = self.engine.url.database
        if self.dialect != "sqlite" or not place or not Path(place).is_absolute():
            return None
        try:
            found = Path(place).stat()
        except OSError:
            return (0, 0)
        return (found.st_dev, found.st_ino) if found.st_size else (0, 0)

    def _prepare(self, has_files: Callable[[], bool]) -> None:
        with self.write() as connection:
            if self.dialect == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            self._check(connection)
            known = sa.inspect(connection).get_table_names()
            if "submissions" not in known:
                if has_files():
                    raise SubmissionStoreError(
                        f"{self.shown}: the database is empty, and there are rank files beside it. "
                        "Fix: put a backup of the database in its place, or make a new one from the files "
                        "with  cir leaderboard rebuild, which keeps all of them private."
                    )
                schema.metadata.create_all(connection)
                connection.exec_driver_sql(
                    f"CREATE TABLE {_VERSION} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
                )
                connection.exec_driver_sql(f"INSERT INTO {_VERSION} VALUES ('{schema.HEAD}')")
                return
            found = "v1"
            if _VERSION in known:
                found = str(connection.exec_driver_sql(f"SELECT version_num FROM {_VERSION}").scalar_one())
            if found != schema.HEAD:
                self._bring_up(connection, found)

    def _check(self, connection: sa.Connection) -> None:
        if self.dialect != "sqlite":
            return
        said = connection.exec_driver_sql("PRAGMA quick_check(3)").scalars().all()
        if said != ["ok"]:
            line = " ".join(" ".join(said).split())[:300]
            raise SubmissionStoreError(f"{self.shown}: the database is damaged: {line}. Fix: {_RESTORE}")

    def _bring_up(self, connection: sa.Connection, found: str) -> None:
        """Make what the tables of an earlier version lack."""
        if found not in schema.EARLIER:
            raise SubmissionStoreError(
                f"{self.shown}: the store has schema {found[:40]!r}; known here are "
                f"{', '.join((*schema.EARLIER, schema.HEAD))}. Fix: upgrade ({upgrade_lines()}), or name "
                "another folder with --home; a store from before 0.1.0 is opened once with 0.1.0."
            )
        schema.metadata.create_all(connection)
        name_methods(connection)
        connection.exec_driver_sql(f"UPDATE {_VERSION} SET version_num = '{schema.HEAD}'")

    def _reason(self, error: DBAPIError) -> str:
        place = self.shown
        if self.dialect == "sqlite":
            fix = "check that the folder exists and can be written, or name another with --home."
            if "malformed" in str(error.orig) or "not a database" in str(error.orig):
                fix = _RESTORE
        else:
            fix = (
                "check that the server runs, and that CIR_LEADERBOARD_DATABASE names user, host and database."
            )
        return f"{place}: cannot open the store: {str(error.orig).strip()}. Fix: {fix}"


def _json_of(text: str | bytes) -> Any:
    """A JSON value of a row. A damaged one is read as empty: it must not take the rows beside it along."""
    try:
        return json.loads(text)
    except ValueError:
        log.error("a value in the database is not JSON; it is read as empty")
        return {}


def _without_secrets(url: sa.URL) -> str:
    """An address as messages show it: no password, and no options, which may hold one."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{url.database or ''}"
    return url.difference_update_query(url.query.keys()).render_as_string(hide_password=True)


def take_turns(connection: sa.Connection, name: str, seed: int = 0) -> None:
    """Wait until no other transaction that named the same is open; on SQLite those that write wait anyway."""
    if connection.dialect.name == "postgresql":
        key = sa.func.hashtextextended(name, seed)
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))


def hold_board(connection: sa.Connection, board: str) -> None:
    """Let nobody else decide what stands on a board until a transaction that writes ends.

    Hold a board before any of its rows: two transactions that lock in different orders would stop each other.
    """
    take_turns(connection, board, _BOARD_LOCKS)


def upsert(connection: sa.Connection, table: sa.Table, row: dict[str, Any], **changes: Any) -> None:
    """Insert a row, or change the one that has its primary key; two processes may do so at once.

    Args:
        connection: a transaction that writes.
        table: the row's table.
        row: the row as inserted.
        **changes: columns to change where it is there already; none leaves it.
    """
    made = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    keys = list(table.primary_key.columns)
    insert = made(table).values(**row)
    if changes:
        connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=changes))
    else:
        connection.execute(insert.on_conflict_do_nothing(index_elements=keys))


def name_methods(connection: sa.Connection) -> None:
    """Write of all submissions how their methods' names are compared."""
    table = schema.submissions
    for one, method in connection.execute(sa.select(table.c.id, table.c.method)).all():
        if method:
            key = name_key(str(method.get("name", "")))
            connection.execute(table.update().where(table.c.id == one).values(name_key=key))


def _while_busy() -> Retrying:
    """Attempts at the change to a write-ahead log: SQLite does not wait where others make it, too."""
    from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

    return Retrying(
        retry=retry_if_exception(lambda error: getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_BUSY),
        stop=stop_after_delay(_BUSY_TIMEOUT_MS / 1000),
        wait=wait_random(0.01, 0.1),
        reraise=True,
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
        for attempt in _while_busy():
            with attempt:
                cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @sa_event.listens_for(engine, "begin")
    def on_begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("cir_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    @sa_event.listens_for(engine, "handle_error")
    def on_error(context: sa.ExceptionContext) -> None:
        # A connection that was opened while the disk was read-only would stay so when that has passed.
        code = getattr(context.original_exception, "sqlite_errorcode", 0)
        if code & 0xFF == sqlite3.SQLITE_READONLY:
            context.is_disconnect = True


def check_copy(chosen: Settings) -> None:
    """Refuse a home that is no working copy of the log that its settings name."""
    try:
        address = (chosen.home.absolute() / "leaderboard.sqlite").as_uri()
        with contextlib.closing(sqlite3.connect(f"{address}?mode=ro", uri=True)) as connection:
            connection.execute("SELECT 1 FROM hub_state")
    except sqlite3.OperationalError as error:
        raise SubmissionStoreError(
            f"{chosen.home}: holds no copy of the log hf://datasets/{chosen.log}. Fix: run this where its "
            "server runs, with the server's home, or unset CIR_LEADERBOARD_LOG for a leaderboard of this "
            "machine;  cir leaderboard token, take-over and squash  work anywhere."
        ) from error
