"""Everything that a store holds as open files, and back: for backups, and to go from SQLite to PostgreSQL.

A folder holds one file of JSON lines a table, a row a line, the rank files below `files/`, and `export.json`
with the number of rows and the sha256 of every file. It is read with any JSON reader.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from cir_datasets.common.atomic import sync_folder
from cir_metrics.catalogue import package_version
from leaderboard.errors import LostFileError, SubmissionStoreError
from leaderboard.store import Store, erase_texts, schema
from leaderboard.store.database import name_methods
from leaderboard.store.files import FileStore, hash_of
from leaderboard.store.sweeping import kept_files, removed_at

FORMAT = "cir-leaderboard-export"
FORMAT_VERSION = 1
_ABOUT = "export.json"
_EARLIER = ("v2", "v3", *schema.EARLIER)
"""Schemas whose exports are read too: their tables have the columns of today's, and one may be missing."""
_MADE_ANEW = ("views", "workers", "arrivals", "turns", "logins")
"""Tables that a server fills by itself."""
_SWEPT = f"{schema.swept.name}.jsonl"
_ATTEMPTS = 2
_BATCH = 500
_CHUNK = 2**20


def export_store(store: Store, files: FileStore, folder: Path) -> dict[str, int]:
    """Write everything that a store holds below a folder; what is there then is one moment's state.

    Args:
        store: what is written, in one read transaction; the server may go on meanwhile.
        files: the rank files.
        folder: where to; it must not exist, and appears complete or not at all.

    Returns:
        Number of rows by table, and of rank files (`files`).

    Raises:
        SubmissionStoreError: the folder exists, or a rank file of a submission is missing or damaged.
    """
    if folder.exists():
        raise SubmissionStoreError(f"{folder}: is there already. Fix: name a folder that does not exist.")
    draft = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    # It holds hashes of tokens and of private links: for the organiser's eyes only.
    draft.mkdir(parents=True, mode=0o700)
    counts: dict[str, int] = {}
    digests: dict[str, str] = {}
    with store.database.read() as connection:
        if store.database.dialect == "postgresql":
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for table in carried_tables():
            path = draft / f"{table.name}.jsonl"
            counts[table.name] = _write_rows(connection, table, path)
            digests[path.name] = hash_of(path)
        named = sorted(set(connection.execute(sa.select(schema.submissions.c.sha256)).scalars()))
    # Refused files may be removed, and sent again, while this goes on: the table says which are not here.
    missing = {sha256: at for sha256 in named if (at := _copy_out(store, files, sha256, draft)) is not None}
    rows = (json.dumps({"sha256": sha256, "at": at.isoformat()}) for sha256, at in missing.items())
    (draft / _SWEPT).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    digests[_SWEPT], counts[schema.swept.name] = hash_of(draft / _SWEPT), len(missing)
    counts["files"] = len(named) - len(missing)
    about = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "schema": schema.HEAD,
        "package_version": package_version(),
        "written_at": datetime.now(UTC).isoformat(),
        "rows": counts,
        "sha256": digests,
    }
    (draft / _ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    _sync(draft)
    draft.rename(folder)
    sync_folder(folder.parent)
    return counts


def _copy_out(store: Store, files: FileStore, sha256: str, draft: Path) -> datetime | None:
    """Copy a rank file into an export.

    Returns:
        When it was removed, where it was refused and is not kept; else None, and it is copied.

    Raises:
        SubmissionStoreError: it is missing or damaged.
    """
    target = draft / "files" / sha256[:2] / f"{sha256}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(_ATTEMPTS):
        try:
            shutil.copyfile(files.local_copy(sha256), target)
            break
        except (LostFileError, FileNotFoundError) as error:
            removed = removed_at(store.database, sha256)
            if removed is not None:
                return removed
            lost = error
    else:
        raise SubmissionStoreError(
            f"{sha256}: a rank file that a submission names is missing or damaged. Fix: put it back from a "
            "backup; cir leaderboard verify  names all such files."
        ) from lost
    return None


def import_store(folder: Path, store: Store, files: FileStore) -> dict[str, int]:
    """Fill an empty store with an export, of this schema or of an earlier one.

    Args:
        folder: as `export_store` wrote it.
        store: where to; it holds no submission yet.
        files: where its rank files go.

    Returns:
        Number of rows by table, and of rank files (`files`).

    Raises:
        SubmissionStoreError: the folder is not an export or is damaged, is of a later schema, or the store is
            not empty. Nothing is changed then, except for rank files that were copied.
    """
    about = _read_about(folder)
    counts: dict[str, int] = {"files": 0}
    with store.database.write() as connection:
        if connection.execute(sa.select(sa.func.count()).select_from(schema.submissions)).scalar_one():
            raise SubmissionStoreError(
                f"{store.database.shown}: the store is not empty. Fix: import into a new home or database."
            )
        for table in carried_tables():
            connection.execute(table.delete())
            path = folder / f"{table.name}.jsonl"
            missing = about["schema"] in _EARLIER and path.name not in about["sha256"]
            counts[table.name] = 0 if missing else _read_rows(connection, table, path)
        erase_texts(connection)
        name_methods(connection)
        if store.database.dialect == "postgresql":
            newest = "SELECT coalesce(max(id), 1) FROM events"
            connection.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('events', 'id'), ({newest}))")
        wanted = kept_files(connection)
        for sha256 in wanted:
            _copy_file(folder, files, sha256)
        counts["files"] = len(wanted)
    if {name: count for name, count in counts.items() if count or name in about["rows"]} != about["rows"]:
        raise SubmissionStoreError(f"{folder}: {_ABOUT} counts other rows than there are. Fix: export again.")
    return counts


def carried_tables() -> list[sa.Table]:
    """The tables that are carried over, those that others refer to first."""
    return [table for table in schema.metadata.sorted_tables if table.name not in _MADE_ANEW]


def _write_rows(connection: sa.Connection, table: sa.Table, path: Path) -> int:
    number = 0
    keys = list(table.primary_key.columns)
    with path.open("w", encoding="utf-8") as handle:
        for row in connection.execute(sa.select(table).order_by(*keys)):
            handle.write(as_line(plain_row(row)))
            number += 1
    return number


def _read_rows(connection: sa.Connection, table: sa.Table, path: Path) -> int:
    number, rows = 0, _rows(table, path)
    while batch := list(islice(rows, _BATCH)):
        connection.execute(table.insert(), batch)
        number += len(batch)
    return number


def _rows(table: sa.Table, path: Path) -> Iterator[dict[str, Any]]:
    names = {column.name for column in table.columns}
    with path.open(encoding="utf-8") as handle:
        for number, line in enumerate(handle, start=1):
            row = json.loads(line)
            if row.keys() != names:
                raise SubmissionStoreError(
                    f"{path}: line {number} has other columns than the table {table.name}. Fix: export again "
                    "with this version of the package."
                )
            yield typed_row(table, row)


def as_line(content: Mapping[str, Any]) -> str:
    """A line of a file of JSON lines."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"


def plain_row(row: sa.Row[Any]) -> dict[str, Any]:
    """A row of a table as JSON values."""
    return {name: _plain(value) for name, value in row._mapping.items()}


def typed_row(table: sa.Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as the database takes it, from JSON values."""
    return {name: _typed(table.columns[name], value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return value


def _typed(column: sa.Column[Any], value: Any) -> Any:
    if value is not None and isinstance(column.type, schema.UtcDateTime):
        return datetime.fromisoformat(value)
    if value is not None and isinstance(column.type, sa.LargeBinary):
        return base64.b64decode(value)
    return value


def _read_about(folder: Path) -> dict[str, Any]:
    path = folder / _ABOUT
    try:
        about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SubmissionStoreError(
            f"{folder}: is not an export: it has no {_ABOUT}. "
            "Fix: name a folder that  cir leaderboard export  wrote."
        ) from None
    except ValueError as error:
        raise SubmissionStoreError(f"{path}: cannot be read: {error}. Fix: export again.") from error
    if about.get("format") != FORMAT or about.get("format_version") != FORMAT_VERSION:
        raise SubmissionStoreError(
            f"{path}: is not an export of a format that this package reads. Fix: upgrade the package."
        )
    if about["schema"] not in (*_EARLIER, schema.HEAD):
        raise SubmissionStoreError(
            f"{path}: is of schema {about['schema']!r}, which version {about['package_version']} of this "
            f"package wrote; this one reads {', '.join((*_EARLIER, schema.HEAD))}. Fix: upgrade the package."
        )
    for name, expected in about["sha256"].items():
        if not (folder / name).is_file() or hash_of(folder / name) != expected:
            raise SubmissionStoreError(f"{folder / name}: is missing or damaged. Fix: export again.")
    return about


def _copy_file(folder: Path, files: FileStore, sha256: str) -> None:
    source = folder / "files" / sha256[:2] / f"{sha256}.json"
    if not source.is_file() or hash_of(source) != sha256:
        raise SubmissionStoreError(f"{source}: is missing or damaged. Fix: export again.")
    incoming = files.incoming()
    try:
        with source.open("rb") as handle:
            while chunk := handle.read(_CHUNK):
                incoming.write(chunk)
        incoming.keep()
    finally:
        incoming.discard()


def _sync(folder: Path) -> None:
    """Make all files below a folder durable."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as handle:
                os.fsync(handle.fileno())
    sync_folder(folder)
