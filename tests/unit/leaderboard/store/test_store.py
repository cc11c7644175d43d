"""The store on real databases: an append-only log, one submission a file, states derived from events."""

from __future__ import annotations

import sqlite3
import threading
import traceback
from datetime import datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError

from leaderboard.errors import ConflictError, SubmissionStoreError
from leaderboard.queue.jobs import Jobs
from leaderboard.store import Store
from leaderboard.store.submission import Submission

SHA = "ab" * 32
REPLACE = "INSERT OR REPLACE INTO events"


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


@pytest.mark.parametrize("statement", ["UPDATE events SET kind = 'published'", "DELETE FROM events"])
def test_the_log_cannot_be_rewritten(store: Store, url: str, statement: str) -> None:
    submission = received(store)
    with sa.create_engine(url).begin() as connection, pytest.raises(DBAPIError, match="append-only"):
        connection.execute(sa.text(statement))
    assert store.submission(submission.id) == submission


@pytest.mark.parametrize("step", [0, 9])
def test_no_row_of_the_log_can_be_replaced(tmp_path: Path, step: int) -> None:
    path = tmp_path / "board.sqlite"
    store = Store(f"sqlite:///{path}")
    submission = received(store)
    columns = f"id + {step}, submission_id, sequence, 'published', at, by, payload"
    with sqlite3.connect(path) as connection, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(f"INSERT OR REPLACE INTO events SELECT {columns} FROM events")
    assert store.submission(submission.id) == submission
    store.close()


def test_a_submission_with_events_cannot_be_deleted(store: Store, url: str) -> None:
    received(store)
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM jobs"))
    with store.database.write() as writing, pytest.raises(IntegrityError, match=r"(?i)foreign key"):
        writing.execute(sa.text("DELETE FROM submissions"))


def test_nothing_personal_stands_in_the_log(store: Store, url: str) -> None:
    received(store, submitter="Ada Example", owner="hf:ada", form={"name": "Ada's method"})
    with sa.create_engine(url).begin() as connection:
        log = str(connection.execute(sa.text("SELECT * FROM events")).fetchall())
    assert "ada" not in log.lower()


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
    assert found.state == "validated"


def test_events_are_appended_all_or_none(store: Store, url: str) -> None:
    submission = received(store)
    with pytest.raises((sa.exc.StatementError, TypeError)):
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
    with sa.create_engine(url).begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'v99'"))
    with pytest.raises(SubmissionStoreError, match=r"schema 'v99'.*Fix: upgrade"):
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


def test_commits_are_synced_to_the_disk(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'board.sqlite'}")
    with store.database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    store.close()


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "board.sqlite"
    store = Store(f"sqlite:///{path}")
    for number in range(400):
        received(store, sha256=f"{number:064d}")
    store.close()
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8192] = b"\xff" * 8192
    path.write_bytes(content)
    with pytest.raises(SubmissionStoreError, match=r"board.sqlite.*Fix: put a backup in its place"):
        Store(f"sqlite:///{path}")


def test_order_is_that_of_arrival_whatever_the_clock_says(store: Store, url: str) -> None:
    first = received(store)
    second = received(store, sha256="cd" * 32)
    with sa.create_engine(url).begin() as connection:
        back = {"early": datetime(2001, 1, 1), "id": second.id}
        connection.execute(sa.text("UPDATE submissions SET received_at = :early WHERE id = :id"), back)
    assert [one.id for one in store.unfinished()] == [first.id, second.id]


def test_another_owner_has_an_entry_of_their_own(store: Store) -> None:
    first = received(store, owner="hf:ada")
    second = received(store, owner="hf:bob")
    assert first.id != second.id
    for one in (first, second):
        done = [("validated", {}), ("scored", {"report": {}}), ("published", {})]
        store.append(one, done, canonical="ef" * 32)  # type: ignore[arg-type]
    found = store.submission(second.id)
    assert found is not None
    assert [one.id for one in store.equals(found)] == [first.id]


def test_hidden_goes_back_to_what_it_was(store: Store) -> None:
    shown = store.append(received(store), [("scored", {"report": {}}), ("published", {})])
    hidden = store.append(shown, [("hidden", {"reason": "under review"})], by="organiser")
    assert store.published("shapes/val") == []
    back = store.append(hidden, [("restored", {"to": shown.state})], by="organiser")
    assert back.state == "published"
    assert [one.id for one in store.published("shapes/val")] == [shown.id]
    assert [event.by for event in back.events] == ["owner", "server", "server", "organiser", "organiser"]


def test_a_change_of_the_board_is_noted(store: Store) -> None:
    assert store.changed("shapes/val") == 0
    shown = store.append(received(store), [("scored", {"report": {}}), ("published", {})])
    assert store.changed("shapes/val") == shown.events[-1].id


def test_a_board_can_be_paused(store: Store) -> None:
    store.pause("shapes/val", "new data on Monday")
    assert store.paused("shapes/val") == "new data on Monday"
    store.pause("shapes/val", None)
    assert store.paused("shapes/val") is None


def test_values_are_kept_with_the_scores(store: Store) -> None:
    submission = received(store)
    assert store.kept_values(submission.id) is None
    store.append(submission, [("scored", {"report": {}})], kept_values=b"first")
    found = store.submission(submission.id)
    assert found is not None
    store.append(found, [("rescored", {"report": {}})], kept_values=b"second")
    assert store.kept_values(submission.id) == b"second"


def test_the_condition_of_the_queue(store: Store) -> None:
    assert store.condition() == {"waiting": 0, "oldest_waiting": None, "last_scored": None, "workers": []}
    first = received(store)
    done = store.append(received(store, sha256="cd" * 32), [("scored", {"report": {}}), ("published", {})])
    jobs = Jobs(store, "w")
    jobs.beat({"version": "0.1.0"})
    found = store.condition()
    assert (found["waiting"], found["oldest_waiting"]) == (1, first.received_at)
    assert found["last_scored"] == done.scored_at
    assert [one["version"] for one in found["workers"]] == ["0.1.0"]
    jobs.leave()
    assert store.condition()["workers"] == []
