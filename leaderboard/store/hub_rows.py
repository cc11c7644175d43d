"""The database's side of the log on the Hub: which rows have changed, and their lines.

Triggers note each row that changes, by whichever process. A line is a row as `transfer` writes it, or the key
of one that is gone; in the place of a person's name it has an id, whose name stands in `people.json`.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from leaderboard.errors import SubmissionStoreError
from leaderboard.store import Store
from leaderboard.store.files import file_path
from leaderboard.store.schema import HEAD, events, jobs, members, submissions, swept
from leaderboard.store.submission import WAITING
from leaderboard.store.transfer import as_line, carried_tables, plain_row, typed_row

FORMAT = "cir-leaderboard-log"
_NAMED = {
    "submissions": ("owner", "submitter", "file_name"),
    "tokens": ("owner",),
    "members": ("team", "owner"),
}
"""Columns that may hold the name of a person."""
_LOCAL = ("about", "jobs")
"""Tables that are made anew where the log is replayed."""
_TABLES = {table.name: table for table in carried_tables() if table.name not in _LOCAL}

Key = tuple[str, tuple[Any, ...]]
"""Of a row: its table's name, and its primary key."""


class HubRows:
    """What changes in a store on SQLite.

    Args:
        store: whose database it is; its rows are noted from now on, those that are there as well.
    """

    def __init__(self, store: Store) -> None:
        """Make the triggers."""
        self._database = store.database
        with self._database.write() as connection:
            self._set_up(connection)
            self.writer = _state(connection, "writer") or secrets.token_hex(8)
            """Names this database."""
            _set(connection, writer=self.writer)

    @staticmethod
    def _set_up(connection: sa.Connection) -> None:
        run = connection.exec_driver_sql
        known = sa.inspect(connection).has_table("hub_pending")
        run("CREATE TABLE IF NOT EXISTS hub_state (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        run("CREATE TABLE IF NOT EXISTS hub_people (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE)")
        columns = "id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, key TEXT NOT NULL"
        run(f"CREATE TABLE IF NOT EXISTS hub_pending ({columns})")
        for name, table in _TABLES.items():
            for what, row in (("INSERT", "NEW."), ("UPDATE", "NEW."), ("DELETE", "OLD.")):
                note = f"INSERT INTO hub_pending (name, key) VALUES ('{name}', {_key_of(table, row)})"
                when = f"hub_{name}_{what} AFTER {what} ON {name}"
                run(f"CREATE TRIGGER IF NOT EXISTS {when} BEGIN {note}; END")
        if not known:
            _note_all(connection)

    @property
    def position(self) -> int:
        """The last segment of the log that the database knows."""
        with self._database.read() as connection:
            return int(_state(connection, "position") or 0)

    @property
    def attempted(self) -> int:
        """The last segment that was made of it, whether its commit was answered or not."""
        with self._database.read() as connection:
            return int(_state(connection, "attempted") or 0)

    def last_noted(self) -> int:
        """The number of the last change that is not committed; 0 where all are."""
        with self._database.read() as connection:
            return _last_noted(connection)

    def is_noted(self, submission_id: str) -> bool:
        """Whether a submission has changed since it was committed."""
        query = "SELECT 1 FROM hub_pending WHERE name = 'submissions' AND key = json_array(?) LIMIT 1"
        with self._database.read() as connection:
            return connection.exec_driver_sql(query, (submission_id,)).first() is not None

    def forget(self, upto: int, position: int) -> None:
        """Note that changes are committed.

        Args:
            upto: the last of them.
            position: the segment that holds them.
        """
        with self._database.write() as connection:
            connection.exec_driver_sql("DELETE FROM hub_pending WHERE id <= ?", (upto,))
            _set(connection, position=position)

    def begin_anew(self) -> None:
        """Note all rows, for a log that has none of them."""
        with self._database.write() as connection:
            _note_all(connection)
            _set(connection, position=0, attempted=0)

    # Into the log.

    def write(self, path: Path, number: int, there: set[str], *, whole: bool = False) -> Segment:
        """Write what has changed to a new segment, or all rows, also where a submission is erased.

        Args:
            path: the segment's file.
            number: the segment's number.
            there: the names of the repository's files.
            whole: whether it holds all rows.
        """
        with self._database.write() as connection:
            erased = _has_erasure(connection)
            if whole or erased:
                _note_all(connection)
            upto = _last_noted(connection)
            noted = _noted(connection, upto)
            first = {"format": FORMAT, "schema": HEAD, "writer": self.writer, "whole": whole or erased}
            with path.open("w", encoding="utf-8") as handle:
                handle.write(as_line(first))
                for key in noted:
                    line = _line_of(connection, key, lambda name: _person(connection, name))
                    handle.write(as_line(line))
            if erased:
                _forget_people(connection)
            people = connection.exec_driver_sql("SELECT id, name FROM hub_people ORDER BY id").all()
            _set(connection, attempted=number)
            named = {row[0]: row[1] for row in people}
            return Segment(upto, len(noted), whole or erased, named, *_files(connection, noted, there))

    def changed(self) -> bytes:
        """What has changed as lines that have the names of people; nothing where nothing has."""
        with self._database.read() as connection:
            noted = _noted(connection, _last_noted(connection))
            lines = [_line_of(connection, key, lambda name: name) for key in noted]
        return "".join(map(as_line, lines)).encode()

    # Out of the log.

    def take_in(self, name: str, lines: bytes) -> None:
        """Make what was changed elsewhere a change of this database, once; see `changed`.

        Args:
            name: under which it was handed in.
            lines: what it says.

        Raises:
            SubmissionStoreError: a newer version of this package wrote it.
        """
        with self._database.write() as connection:
            if _state(connection, name):
                return
            for line in lines.splitlines():
                _apply(connection, json.loads(line), {})
            _set(connection, **{name: "taken"})

    def replay(self, segments: Iterable[tuple[int, Path]], people: Mapping[str, str]) -> None:
        """Bring the rows to what segments say, the earliest first.

        Args:
            segments: number and file of each.
            people: names by their ids.

        Raises:
            SubmissionStoreError: one is missing, or a newer version of this package wrote it.
        """
        with self._database.write() as connection:
            before = _last_noted(connection)
            connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
            for pair in people.items():
                connection.exec_driver_sql("INSERT OR REPLACE INTO hub_people VALUES (?, ?)", pair)
            for number, path in segments:
                first, *lines = map(json.loads, path.read_bytes().splitlines())
                if not first["whole"] and number != int(_state(connection, "position") or 0) + 1:
                    raise SubmissionStoreError(
                        f"log/{path.name}: a segment before it is missing. Fix: put it back from an earlier "
                        "commit of the log's repository."
                    )
                for table in (swept, members) if first["whole"] else ():
                    connection.execute(table.delete())
                for line in lines:
                    _apply(connection, line, people)
                _set(connection, position=number)
            waiting = sa.select(submissions.c.id).where(
                submissions.c.state.in_(WAITING), submissions.c.id.not_in(sa.select(jobs.c.submission_id))
            )
            connection.execute(jobs.insert().from_select(["submission_id"], waiting))
            connection.exec_driver_sql("DELETE FROM hub_pending WHERE id > ?", (before,))


@dataclass(frozen=True)
class Segment:
    """What one commit holds.

    Args:
        upto: the number of the last change in it.
        rows: how many rows.
        whole: whether these are all.
        people: names by their ids, of all rows.
        added: rank files of the home by name, below `files`.
        removed: names of rank files.
    """

    upto: int
    rows: int
    whole: bool
    people: dict[str, str]
    added: list[str]
    removed: list[str]


def _last_noted(connection: sa.Connection) -> int:
    return connection.exec_driver_sql("SELECT max(id) FROM hub_pending").scalar() or 0


def _state(connection: sa.Connection, name: str) -> str:
    found = connection.exec_driver_sql("SELECT value FROM hub_state WHERE name = ?", (name,)).scalar()
    return str(found or "")


def _set(connection: sa.Connection, **values: object) -> None:
    for name, value in values.items():
        connection.exec_driver_sql("INSERT OR REPLACE INTO hub_state VALUES (?, ?)", (name, str(value)))


def _key_of(table: sa.Table, row: str = "") -> str:
    columns = ", ".join(f'{row}"{column.name}"' for column in table.primary_key.columns)
    return f"json_array({columns})"


def _where(table: sa.Table, key: Iterable[Any]) -> sa.ColumnElement[bool]:
    return sa.and_(*(column == value for column, value in zip(table.primary_key.columns, key, strict=True)))


def _note_all(connection: sa.Connection) -> None:
    for name, table in _TABLES.items():
        rows = f"SELECT '{name}', {_key_of(table)} FROM {name}"
        connection.exec_driver_sql(f"INSERT INTO hub_pending (name, key) {rows}")


def _has_erasure(connection: sa.Connection) -> bool:
    """Whether a submission that is erased has changed."""
    query = (
        "SELECT 1 FROM hub_pending JOIN events ON hub_pending.key = json_array(events.submission_id) "
        "WHERE hub_pending.name = 'submissions' AND events.kind = 'erased' LIMIT 1"
    )
    return connection.exec_driver_sql(query).first() is not None


def _noted(connection: sa.Connection, upto: int) -> list[Key]:
    """The rows that have changed; erasures come before other events, which they let change."""
    query = "SELECT name, key FROM hub_pending WHERE id <= ? GROUP BY name, key ORDER BY min(id)"
    noted = [(name, tuple(json.loads(key))) for name, key in connection.exec_driver_sql(query, (upto,))]
    erased = set(connection.execute(sa.select(events.c.id).where(events.c.kind == "erased")).scalars())
    return sorted(noted, key=lambda key: key[0] != events.name or key[1][0] not in erased)


def _line_of(connection: sa.Connection, key: Key, as_told: Callable[[str], str]) -> dict[str, Any]:
    table = _TABLES[key[0]]
    found = connection.execute(sa.select(table).where(_where(table, key[1]))).first()
    what = "gone" if found is None else "row"
    keys = (column.name for column in table.primary_key.columns)
    row = dict(zip(keys, key[1], strict=True)) if found is None else plain_row(found)
    return {"table": table.name, what: _renamed(table, row, as_told)}


def _renamed(table: sa.Table, row: Mapping[str, Any], as_told: Callable[[str], str]) -> dict[str, Any]:
    """A row, or a key, with other words for the names of people; no name stays none."""
    named = _NAMED.get(table.name, ())
    return {column: as_told(value) if column in named and value else value for column, value in row.items()}


def _person(connection: sa.Connection, name: str) -> str:
    """The id of a name in `people.json`."""
    query = "SELECT id FROM hub_people WHERE name = ?"
    found = connection.exec_driver_sql(query, (name,)).scalar()
    if found is None:
        found = f"person:{secrets.token_hex(8)}"
        connection.exec_driver_sql("INSERT INTO hub_people VALUES (?, ?)", (found, name))
    return str(found)


def _forget_people(connection: sa.Connection) -> None:
    """Remove the names that no row has any more."""
    connection.exec_driver_sql("PRAGMA secure_delete = ON")
    used = " UNION ".join(
        f'SELECT "{column}" FROM {name}' for name, columns in _NAMED.items() for column in columns
    )
    connection.exec_driver_sql(f"DELETE FROM hub_people WHERE name NOT IN ({used})")


def _files(connection: sa.Connection, noted: Iterable[Key], there: set[str]) -> tuple[list[str], list[str]]:
    """The rank files to add and to remove."""
    hashes = {key[0] for name, key in noted if name == swept.name}
    for one in (key[0] for name, key in noted if name == "submissions"):
        hashes |= set(
            connection.execute(sa.select(submissions.c.sha256).where(submissions.c.id == one)).scalars()
        )
    is_gone = sa.select(swept.c.sha256).where(swept.c.at.is_not(None))
    gone = {one for one in hashes if connection.execute(is_gone.where(swept.c.sha256 == one)).first()}
    removed = {file_path(one) for one in gone} & there
    return sorted({file_path(one) for one in hashes - gone} - there), sorted(removed)


def _apply(connection: sa.Connection, line: dict[str, Any], people: Mapping[str, str]) -> None:
    """Bring one row to what a line says."""
    table, said = _TABLES.get(line.get("table", "")), line.get("row") or line.get("gone") or {}
    if table is None or not said or not said.keys() <= {column.name for column in table.columns}:
        raise SubmissionStoreError(
            "the log holds rows of a newer version of this package. Fix: upgrade the package."
        )
    row = typed_row(table, _renamed(table, said, lambda name: people.get(name, name)))
    this = _where(table, (row[column.name] for column in table.primary_key.columns))
    if "gone" in line:
        connection.execute(table.delete().where(this))
        return
    found = connection.execute(sa.select(table).where(this)).first()
    if found is None:
        connection.execute(table.insert().values(**row))
    elif any(found._mapping[name] != value for name, value in row.items()):
        connection.execute(table.update().where(this).values(**row))
