"""A store of 0.1.0 is brought up with everything in it; who starts together does it once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import forked
import pytest
import sqlalchemy as sa

from leaderboard.errors import SubmissionStoreError
from leaderboard.queue.jobs import Jobs
from leaderboard.store import Store


@pytest.fixture
def older(url: str) -> str:
    """The address of a store as 0.1.0 left it: without logins, and with names in small letters alone."""
    store = Store(url)
    for number, kinds in enumerate((["published"], ["rejected"], [])):
        one, _ = store.receive(board="shapes/val", sha256=f"{number:064d}", size=10, file_name="run.json")
        happened: Any = [("scored", {"report": {"main": 0.5}})] if number == 0 else []
        store.append(one, [*happened, *((kind, {}) for kind in kinds)], method={"name": f"Ada's {number}"})
    with store.database.write() as connection:
        connection.execute(sa.text("DROP TABLE logins"))
        connection.execute(sa.text("UPDATE submissions SET name_key = 'ada''s 0'"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'v4'"))
    store.close()
    return url


def test_a_store_of_the_first_release_is_brought_up(older: str, tmp_path: Path) -> None:
    """Everything is there, and its tables are those of a new one."""
    store = Store(older)
    first, refused, waiting = store.of_board("shapes/val")
    assert [one.state for one in (first, refused, waiting)] == ["published", "rejected", "received"]
    assert (first.scores or {})["main"] == 0.5
    assert store.named("shapes/val", "ADA'S  O") == [first]
    job = Jobs(store, "w").take()
    assert job.submission.id == waiting.id
    new = Store(f"sqlite:///{tmp_path / 'new.sqlite'}")

    def layout(of: Store) -> dict[str, list[str]]:
        look = sa.inspect(of.database.engine)
        return {name: [each["name"] for each in look.get_columns(name)] for name in look.get_table_names()}

    assert layout(store) == layout(new)
    for each in (store, new):
        each.close()


def test_the_log_stays_append_only(older: str) -> None:
    store = Store(older)
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), store.database.write() as connection:
        connection.execute(sa.text("DELETE FROM events"))
    store.close()


def test_a_store_from_before_the_first_release_is_left_as_it_was(older: str) -> None:
    with sa.create_engine(older).begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'v3'"))
    with pytest.raises(SubmissionStoreError, match=r"schema 'v3'.*Fix:.*0\.1\.0"):
        Store(older)
    with sa.create_engine(older).connect() as connection:
        assert not sa.inspect(connection).has_table("logins")


_PROGRAM = """
import sys
from pathlib import Path
from typing import Any
from leaderboard.identity.receipts import public_pem
from leaderboard.server import Server
from leaderboard.settings import Settings
settings = Settings(Path(sys.argv[1]), database=sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
server = Server.open(settings)
submissions = sum(server.store.count_published().values())
print(public_pem(server.key.public_key()).replace("\\n", ""), submissions, flush=True)
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
        assert server.stdout.readline() == "ready\n"
    for server in servers:
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
def test_an_older_store_is_brought_up_once(older: str, tmp_path: Path) -> None:
    found = opened_together(tmp_path / "home", older)
    assert len(set(found)) == 1
    assert found[0].split()[-1] == "1"
