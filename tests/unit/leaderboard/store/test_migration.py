"""A store of the first version is brought up with everything in it; who starts together does it once."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import forked
import pytest
import sqlalchemy as sa

from leaderboard.errors import SubmissionStoreError
from leaderboard.queue.jobs import Jobs
from leaderboard.store import Store

_V1 = """
CREATE TABLE about (name VARCHAR(64) NOT NULL, value VARCHAR(255) NOT NULL, PRIMARY KEY (name));
CREATE TABLE submissions (
    id VARCHAR(32) NOT NULL, board VARCHAR(128) NOT NULL, sha256 VARCHAR(64) NOT NULL,
    attempt INTEGER NOT NULL,
    size INTEGER NOT NULL, file_name VARCHAR(255) NOT NULL, received_at DATETIME NOT NULL,
    submitter VARCHAR(200) NOT NULL, form JSON NOT NULL, method JSON, baseline BOOLEAN NOT NULL,
    PRIMARY KEY (id), UNIQUE (board, sha256, attempt));
CREATE INDEX ix_submissions_board ON submissions (board);
CREATE TABLE events (
    id INTEGER NOT NULL, submission_id VARCHAR(32) NOT NULL, sequence INTEGER NOT NULL,
    kind VARCHAR(32) NOT NULL, at DATETIME NOT NULL, payload JSON NOT NULL, PRIMARY KEY (id),
    UNIQUE (submission_id, sequence), FOREIGN KEY(submission_id) REFERENCES submissions (id));
CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
INSERT INTO about VALUES ('schema_version', '1');
"""
"""The tables as version 1 made them, from `.schema` of such a store."""

ROWS = [
    ("a1", "Ada's method", ["received", "validated", "scored", "published"]),
    ("b2", None, ["received", "rejected"]),
    ("c3", None, ["received"]),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "leaderboard.sqlite"
    with sqlite3.connect(made) as connection:
        connection.executescript(_V1)
        for number, (name, method, kinds) in enumerate(ROWS):
            shown = json.dumps(None if method is None else {"name": method})
            row = (name, "shapes/val", f"{number:064d}", 1, 10, "run.json", f"2026-01-0{9 - number} 10:00:00")
            connection.execute(
                "INSERT INTO submissions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, "Ada", "{}", shown, 0),
            )
            for sequence, kind in enumerate(kinds, start=1):
                payload = json.dumps({"report": {"main": 0.5}} if kind == "scored" else {})
                connection.execute(
                    "INSERT INTO events (submission_id, sequence, kind, at, payload) VALUES (?, ?, ?, ?, ?)",
                    (name, sequence, kind, "2026-01-09 10:00:01", payload),
                )
    return made


def test_every_submission_and_event_is_there(path: Path) -> None:
    store = Store(f"sqlite:///{path}")
    for name, method, kinds in ROWS:
        found = store.submission(name)
        assert found is not None
        assert [event.kind for event in found.events] == kinds
        assert found.state == kinds[-1]
        assert found.method == (None if method is None else {"name": method})
        assert found.submitter == "Ada"
    first = store.submission("a1")
    assert first is not None
    assert first.scores == {"main": 0.5}
    assert first.scored_at is not None
    assert [one.id for one in store.named("shapes/val", "ADA'S  method")] == ["a1"]
    store.close()


def test_what_waited_still_waits_in_the_order_of_arrival(path: Path) -> None:
    store = Store(f"sqlite:///{path}")
    job = Jobs(store, "w").take()
    assert job is not None
    assert job.submission.id == "c3"
    assert [one.number for one in map(store.submission, ("a1", "b2", "c3")) if one] == [1, 5, 7]
    store.close()


def test_a_migrated_store_has_the_tables_of_a_new_one(path: Path, tmp_path: Path) -> None:
    Store(f"sqlite:///{path}").close()
    Store(f"sqlite:///{tmp_path / 'new.sqlite'}").close()

    def layout(file: Path) -> dict[tuple[str, str], object]:
        with sqlite3.connect(file) as connection:
            names = connection.execute("SELECT type, name, tbl_name FROM sqlite_master").fetchall()
            columns = {
                table: connection.execute(f"PRAGMA table_info({table})").fetchall()
                for kind, table, _ in names
                if kind == "table"
            }
        return {(kind, name): columns.get(name, table) for kind, name, table in names}

    assert layout(path) == layout(tmp_path / "new.sqlite")


def test_the_log_stays_append_only(path: Path) -> None:
    store = Store(f"sqlite:///{path}")
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), store.database.write() as connection:
        connection.execute(sa.text("DELETE FROM events"))
    store.close()


def test_a_second_start_changes_nothing(path: Path) -> None:
    Store(f"sqlite:///{path}").close()
    store = Store(f"sqlite:///{path}")
    assert store.count_published() == {"shapes/val": 1}
    store.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE jobs (in_the_way INTEGER)")
        before = connection.execute("SELECT * FROM submissions").fetchall()
    with pytest.raises(SubmissionStoreError, match="Fix:"):
        Store(f"sqlite:///{path}")
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT * FROM submissions").fetchall() == before
        assert connection.execute("SELECT value FROM about").fetchone() == ("1",)


_PROGRAM = """
import sys
from pathlib import Path
from leaderboard.identity.receipts import public_pem
from leaderboard.server import Server
from leaderboard.settings import Settings
settings = Settings(Path(sys.argv[1]), database=sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
server = Server.open(settings)
submissions = sum(server.store.count_published().values())
print(public_pem(server.key).replace("\\n", ""), submissions, flush=True)
server.close()
"""
_SERVERS = 3


def opened_together(home: Path, url: str) -> list[str]:
    """What each server says when all begin to open the store at once."""
    command = [sys.executable, "-c", _PROGRAM, str(home), url]
    servers = [
        forked.Process(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(_SERVERS)
    ]
    for server in servers:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
    for server in servers:
        assert server.stdin is not None
        server.stdin.write("\n")
        server.stdin.flush()
    said = [server.communicate(timeout=120) for server in servers]
    assert [server.returncode for server in servers] == [0] * _SERVERS, said
    return [out for out, _ in said]


@pytest.mark.slow
def test_a_new_store_is_made_once(url: str, tmp_path: Path) -> None:
    assert len(set(opened_together(tmp_path / "home", url))) == 1


_MANY_STORES = """
import multiprocessing, sys
from leaderboard.store.database import Database

def open_in_turn(barrier, folder):
    for number in range(int(sys.argv[2])):
        barrier.wait()
        try:
            Database(f"sqlite:///{folder}/{number}.sqlite").close()
        except BaseException:
            barrier.abort()
            raise

context = multiprocessing.get_context("fork")
barrier = context.Barrier(4)
processes = [context.Process(target=open_in_turn, args=(barrier, sys.argv[1])) for _ in range(4)]
for process in processes:
    process.start()
for process in processes:
    process.join()
print([process.exitcode for process in processes])
"""


def test_new_stores_that_four_processes_open_at_once_are_never_locked(tmp_path: Path) -> None:
    """SQLite waits for no one while a database's first connections change to a write-ahead log."""
    command = [sys.executable, "-c", _MANY_STORES, str(tmp_path), "100"]
    done = forked.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.stdout == "[0, 0, 0, 0]\n", done.stderr


@pytest.mark.slow
def test_an_old_store_is_migrated_once(path: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(path, home / "leaderboard.sqlite")
    found = opened_together(home, f"sqlite:///{home / 'leaderboard.sqlite'}")
    assert len(set(found)) == 1
    assert found[0].split()[-1] == "1"
