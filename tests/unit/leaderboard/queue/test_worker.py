"""The worker's loop: whatever one submission does, it is logged, and the others go on."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from leaderboard_world.entries import shipped
from leaderboard_world.judging import children, reading
from read_pages import submission_html
from waiting import SECONDS, wait_for

from leaderboard.errors import ChildCrashedError, PassingError
from leaderboard.intake import Cover
from leaderboard.queue.worker import BOARD_REMOVED, CRASHED, PUBLIC_FAILURE, Worker
from leaderboard.server import Server
from leaderboard.store import Store
from leaderboard.store.files import FolderFiles
from leaderboard.store.schema import jobs, views
from leaderboard.store.submission import Submission

GOOD = shipped("random")
OTHER = shipped("image_only-pixels")


def received(server: Server, content: bytes = GOOD) -> Submission:
    submission, _ = server.intake.take("shapes/val", [content], Cover())
    return submission


def recorded(server: Server, board: str, sha256: str) -> Submission:
    submission, _ = server.store.receive(board=board, sha256=sha256, size=3, file_name="run.json")
    return submission


def now(server: Server, submission: Submission) -> Submission:
    found = server.store.submission(submission.id)
    assert found is not None
    return found


def place(server: Server, submission: Submission) -> Path:
    return server.settings.home / "files" / submission.sha256[:2] / f"{submission.sha256}.json"


def swapped_for(server: Server, submission: Submission) -> Path:
    """The place of a submission's file, which was moved away."""
    path = place(server, submission)
    path.rename(path.with_suffix(".away"))
    return path


def test_a_removed_board_ends_its_submissions_and_not_the_loop(server: Server) -> None:
    gone = recorded(server, "gone/val", "ab" * 32)
    good = received(server)
    server.worker.start()
    wait_for(lambda: now(server, good).finished, "the good one")
    ended = now(server, gone)
    assert ended.state == "failed"
    assert ended.events[-1].payload == {"message": BOARD_REMOVED}
    assert now(server, good).state == "published"


def test_a_board_without_its_data_leaves_its_submissions_waiting(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    waiting = recorded(server, "cirr/val", "ab" * 32)
    good = received(server)
    server.worker.start()
    wait_for(lambda: now(server, good).finished, "the good one")
    assert now(server, waiting).state == "received"
    assert "cir datasets prepare cirr/val" in caplog.text


def test_trouble_that_passes_ends_no_submission(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    first = received(server)
    path = swapped_for(server, first)
    # Reading this file is an error of input and output.
    path.symlink_to("/proc/self/mem")
    with pytest.raises(PassingError, match="Input/output error"):
        server.worker.process(first)
    good = received(server, OTHER)
    server.worker.start()
    wait_for(lambda: now(server, good).finished, "the good one")
    wait_for(lambda: f"submission {first.id} waits: " in caplog.text, "the second try")
    assert now(server, first) == first
    path.unlink()
    path.with_suffix(".away").rename(path)
    wait_for(lambda: now(server, first).finished, "the first")
    assert now(server, first).state == "published"


class Endless(FolderFiles):
    """A place whose files are a named pipe, so that judging one ends when a test wants it to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.pipe = folder / "pipe"
        os.mkfifo(self.pipe)

    def local_copy(self, sha256: str) -> Path:
        return self.pipe


@pytest.mark.usefixtures("processes")
def test_what_crashes_two_processes_is_not_judged_again(server: Server, tmp_path: Path) -> None:
    submission, files = received(server), Endless(tmp_path / "endless")
    worker = Worker(files, server.store)
    kills = [
        (signal.SIGKILL, PassingError),
        (signal.SIGBUS, ChildCrashedError),
        (signal.SIGTERM, PassingError),
        (signal.SIGKILL, PassingError),
    ]
    with ThreadPoolExecutor(1) as aside:
        for how, error in kills:
            tried = aside.submit(worker.process, submission)
            with reading(files.pipe):
                os.kill(children()[0], how)
                with pytest.raises(error, match=how.name):
                    tried.result(SECONDS)
            assert now(server, submission) == submission
            with server.store.database.write() as connection:
                connection.execute(jobs.update().values(not_before=None))
        last = aside.submit(worker.process, submission)
        with reading(files.pipe):
            os.kill(children()[0], signal.SIGSEGV)
            ended = last.result(SECONDS)
    assert ended == now(server, submission)
    assert [event.kind for event in ended.events] == ["received", "failed"]
    assert ended.events[-1].payload == {"message": CRASHED, "crashes": 2}


@pytest.mark.usefixtures("processes")
def test_a_worker_stops_while_it_judges_and_the_submission_waits(server: Server, tmp_path: Path) -> None:
    submission, files = received(server), Endless(tmp_path / "endless")
    worker = Worker(files, server.store)
    worker.start()
    with reading(files.pipe):
        worker.stop()
    assert children() == []
    assert now(server, submission) == submission


@pytest.mark.usefixtures("processes")
def test_signals_that_come_while_the_flag_is_locked_end_the_worker(server: Server) -> None:
    """Handlers run in the thread that waits for the flag, between any two of its steps, and in each other."""
    server.worker.start()
    loop = server.worker._thread

    def handled() -> None:
        with server.worker._stop._cond:
            for _ in range(3):
                server.worker.stopped_by_signal(signal.SIGTERM, None)

    handling = threading.Thread(target=handled, daemon=True)
    handling.start()
    handling.join(SECONDS)
    assert not handling.is_alive()
    loop.join(SECONDS)
    assert not loop.is_alive()


def test_an_error_of_the_servers_own_is_not_held_against_the_file(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def slipping(*_: Any, **__: Any) -> None:
        raise RuntimeError("a slip")

    submission = received(server)
    with monkeypatch.context() as patch:
        patch.setattr("leaderboard.queue.worker.judge_for", slipping)
        with pytest.raises(PassingError, match="a slip"):
            server.worker.process(submission)
    assert "Traceback" in caplog.text
    assert now(server, submission) == submission
    assert server.worker.process(submission).state == "published"


def test_a_lost_file_ends_the_submission_and_not_the_loop(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    lost = received(server)
    swapped_for(server, lost)
    good = received(server, OTHER)
    server.worker.start()
    wait_for(lambda: now(server, good).finished, "the good one")
    assert now(server, lost).state == "failed"
    assert "no such file" in caplog.text
    assert now(server, lost).events[-1].payload == {"message": PUBLIC_FAILURE}


def test_a_rejected_file_keeps_its_findings(server: Server) -> None:
    done = server.worker.process(received(server, b"[1]"))
    assert [event.kind for event in done.events] == ["received", "rejected"]
    assert [finding["code"] for finding in done.findings] == ["wrong-format"]


def test_a_refused_file_is_removed_when_its_days_are_over(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = server.worker.process(received(server, b"[1]"))
    young = server.worker.process(received(server, b"[2]"))
    server.close()
    with sqlite3.connect(server.settings.home / "leaderboard.sqlite") as connection:
        connection.execute("DROP TRIGGER events_refuse_update")
        connection.execute("UPDATE events SET at = '2020-01-01' WHERE submission_id = ?", (old.id,))
    for days, kept in ((0, True), (14, False)):
        again = Server.open(replace(server.settings, refused_days=days))
        good = received(again, GOOD if days else OTHER)
        with caplog.at_level("INFO"):
            again.worker.start()
            wait_for(lambda again=again, good=good: now(again, good).finished, "a round")  # type: ignore[misc]
            if not kept:
                wait_for(lambda: "is not kept any more" in caplog.text, "the sweep")
        again.worker.stop()
        assert place(again, old).exists() == kept
        assert place(again, young).exists()
        facts = submission_html(again, now(again, old))
        assert ("its file was refused, and is not kept since" in facts) is not kept
        assert "wrong-format" in facts
        again.close()


def test_the_same_rankings_written_otherwise_make_no_new_entry(server: Server) -> None:
    first = server.worker.process(received(server))
    again = server.worker.process(received(server, GOOD + b"\n"))
    assert (first.state, again.state) == ("published", "superseded")
    assert again.events[-1].payload == {"by": first.id, "same_rankings": True}
    assert again.canonical == first.canonical


def test_a_baselines_name_is_not_anybodys(server: Server) -> None:
    taken, _ = server.intake.take("shapes/val", [GOOD], Cover(baseline=True))
    server.worker.process(taken)
    document = json.loads(OTHER)
    document["method"]["name"] = str(json.loads(GOOD)["method"]["name"]).upper()
    mine = server.worker.process(received(server, json.dumps(document).encode()))
    assert mine.state == "private"
    assert mine.events[-1].payload["reason"]["code"] == "name-taken"
    assert [one.id for one in server.store.published("shapes/val")] == [taken.id]


def test_values_a_query_are_kept_with_the_score(server: Server) -> None:
    done = server.worker.process(received(server))
    kept = np.load(io.BytesIO(server.store.kept_values(done.id) or b""))
    assert math.isclose(kept["recall@10"].mean(), (done.scores or {})["metrics"]["recall@10"])


def test_the_groups_of_a_board_are_made_without_a_reader(server: Server) -> None:
    submission = received(server)
    server.worker.start()
    kept = sa.select(views.c.changed).where(views.c.name == "groups:shapes/val")

    def made_of() -> int | None:
        with server.store.database.read() as connection:
            found: int | None = connection.execute(kept).scalar_one_or_none()
        return found

    wait_for(lambda: made_of() is not None, "the groups")
    assert made_of() == now(server, submission).events[-1].id


def test_a_store_that_cannot_be_written_for_a_while_leaves_no_job_behind(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = received(server)
    broken = iter([True])
    written = Store.append

    def append(*arguments: Any, **named: Any) -> Any:
        if next(broken, False):
            raise sa.exc.OperationalError("INSERT", {}, sqlite3.OperationalError("database is locked"))
        return written(*arguments, **named)

    monkeypatch.setattr(Store, "append", append)
    server.worker.start()
    wait_for(lambda: now(server, submission).finished, "the submission")
    assert now(server, submission).state == "published"
