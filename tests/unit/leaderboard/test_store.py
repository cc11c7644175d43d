"""The store on a real SQLite file: an append-only log, one submission a file, states derived from events."""

from __future__ import annotations

import sqlite3
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from leaderboard import schema
from leaderboard.errors import ConflictError, SubmissionStoreError
from leaderboard.store import Store
from leaderboard.submission import Submission

SHA = "ab" * 32
REPLACE = "INSERT OR REPLACE INTO events"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'board.sqlite'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store(url)
    yield opened
    opened.close()


def received(store: Store, sha256: str = SHA, board: str = "shapes/val", **more: object) -> Submission:
    submission, _ = store.receive(board=board, sha256=sha256, size=3, file_name="run.json", **more)  # type: ignore[arg-type]
    return submission


def test_state_follows_the_events(store: Store) -> None:
    first = received(store)
    assert first.state == "received"
    assert [one.id for one in store.unfinished()] == [first.id]
    checked = store.append(first, [("validated", {"findings": []})], method={"name": "m"})
    assert checked.state == "validated"
    done = store.append(checked, [("scored", {"report": {"main": 0.5}}), ("published", {})])
    assert done.state == "published"
    assert done.finished
    assert done.method == {"name": "m"}
    assert done.scores == {"main": 0.5}
    assert [event.sequence for event in done.events] == [1, 2, 3, 4]
    assert store.unfinished() == []
    assert [one.id for one in store.published("shapes/val")] == [first.id]
    assert store.published("cirr/val") == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET kind = 'published'",
        "DELETE FROM events",
        f"{REPLACE} SELECT id, submission_id, sequence, 'published', at, payload FROM events",
        f"{REPLACE} SELECT id + 9, submission_id, sequence, 'published', at, payload FROM events",
    ],
)
def test_the_log_cannot_be_rewritten(store: Store, url: str, statement: str) -> None:
    submission = received(store)
    path = url.removeprefix("sqlite:///")
    with sqlite3.connect(path) as connection, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    with sa.create_engine(url).begin() as engine, pytest.raises(IntegrityError, match="append-only"):
        engine.execute(sa.text(statement))
    assert store.submission(submission.id) == submission


def test_a_submission_with_events_cannot_be_deleted(store: Store, url: str) -> None:
    received(store)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            connection.execute("DELETE FROM submissions")


def test_nothing_personal_stands_in_the_log(store: Store, url: str) -> None:
    received(store, submitter="Ada Example", form={"name": "Ada's method"})
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        log = str(connection.execute("SELECT * FROM events").fetchall())
    assert "Ada" not in log


def test_the_same_file_is_one_submission_of_a_board(store: Store) -> None:
    first = received(store)
    again, new = store.receive(board="shapes/val", sha256=SHA, size=3, file_name="other-name.json")
    assert (again.id, new) == (first.id, False)
    assert received(store, board="cirr/val").id != first.id


def test_a_rejected_file_may_come_again_with_other_words(store: Store) -> None:
    first = store.append(received(store, form={"name": "a"}), [("rejected", {"findings": []})])
    same, new = store.receive(
        board="shapes/val", sha256=SHA, size=3, file_name="run.json", form={"name": "a"}
    )
    assert (same.id, new) == (first.id, False)
    other, new = store.receive(
        board="shapes/val", sha256=SHA, size=3, file_name="run.json", form={"name": "b"}
    )
    assert new
    assert (other.attempt, other.state) == (2, "received")
    assert store.submission(first.id) == first


def test_a_failed_file_may_come_again_as_it_was(store: Store) -> None:
    store.append(received(store), [("failed", {"message": "server"})])
    again, new = store.receive(board="shapes/val", sha256=SHA, size=3, file_name="run.json")
    assert new
    assert again.attempt == 2


def test_of_two_who_append_at_once_one_is_told(store: Store) -> None:
    submission = received(store)
    store.append(submission, [("validated", {})])
    with pytest.raises(ConflictError, match="another process"):
        store.append(submission, [("rejected", {})])
    found = store.submission(submission.id)
    assert found is not None
    assert found.state == "validated"


def test_events_are_appended_all_or_none(store: Store, url: str) -> None:
    submission = received(store)
    with pytest.raises(sa.exc.StatementError):
        store.append(submission, [("validated", {}), ("scored", {"report": object()})])
    assert store.submission(submission.id) == submission


def test_many_threads_receive_the_same_file_once(store: Store) -> None:
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.append(received(store).id)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert len(set(ids)) == 1


def test_a_second_start_finds_everything(store: Store, url: str) -> None:
    first = received(store)
    store.close()
    again = Store(url)
    assert again.submission(first.id) == first
    assert first.received_at.tzinfo is not None
    again.close()


def test_a_store_of_a_newer_version_is_refused(store: Store, url: str) -> None:
    store.close()
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE about SET value = ?", (str(schema.SCHEMA_VERSION + 1),))
    with pytest.raises(SubmissionStoreError, match=r"schema version 2.*Fix: upgrade"):
        Store(url)


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(SubmissionStoreError, match=r"nowhere.*cannot open the store.*Fix:"):
        Store(f"sqlite:///{tmp_path / 'nowhere' / 'board.sqlite'}")


@pytest.mark.parametrize(
    "address",
    [
        "sqlite:////nowhere/me:hunter2@x/board.sqlite?password=hunter2",
        "postgresql://me:hunter2@[",
        "nosuch://me:hunter2@host/board",
        "me:hunter2@host",
    ],
)
def test_no_message_shows_the_password_of_the_store(address: str) -> None:
    with pytest.raises(SubmissionStoreError, match="Fix: ") as error:
        Store(address)
    whole = "".join(traceback.format_exception(error.value))
    assert "hunter2" not in whole.replace("nowhere/me:hunter2@x/board", "")


def test_commits_are_synced_to_the_disk(store: Store, url: str) -> None:
    with store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
