"""Nothing is lost or stuck: restarts, kill -9 between the steps, failures of the server's own."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import leaderboard_world as world
import pytest

from leaderboard.intake import Cover
from leaderboard.queue.worker import PUBLIC_FAILURE
from leaderboard.server import Server
from leaderboard.settings import Settings


@pytest.fixture
def home(tmp_path: Path, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CIR_LEADERBOARD_DATABASE", new_database())
    return tmp_path / "home"


def settings_of(home: Path) -> Settings:
    return Settings(home, database=os.environ["CIR_LEADERBOARD_DATABASE"])


def taken_in(home: Path, content: bytes) -> Any:
    """Receive a file as the server does, and stop there, as a crash would."""
    opened = Server.open(settings_of(home))
    submission, new = opened.intake.take("shapes/val", [content[:1000], content[1000:]], Cover("run.json"))
    opened.store.close()
    assert new
    return submission


@pytest.mark.slow
def test_a_restart_keeps_the_rows(home: Path) -> None:
    with world.serving(home) as first:
        done = first.submitted(world.as_bytes(world.rank_file(1, "Stays")))
        rows = first.rows()
        assert first.stop() == 0
    with world.serving(home) as second:
        assert second.rows() == rows
        assert second.get(f"/api/submissions/{done['id']}").json() == done
        assert second.get(done["file"]).status_code == 200
        assert second.stop(signal.SIGINT) == 0
        assert "Traceback" not in second.log.read_text()
        assert "Stopped." in second.log.read_text()


def test_what_was_received_before_a_crash_is_finished_after_it(home: Path) -> None:
    submission = taken_in(home, world.as_bytes(world.rank_file(2, "Survivor")))
    assert submission.state == "received"
    with world.serving_here(home) as running:
        done = running.finished(submission.id)
        assert done["state"] == "published"
        assert [row["method"]["name"] for row in running.rows()] == ["Survivor"]


def test_a_failure_of_the_server_is_told_without_its_reason(home: Path) -> None:
    content = world.as_bytes(world.rank_file(4, "Lost file"))
    submission = taken_in(home, content)
    stored = home / "files" / submission.sha256[:2] / f"{submission.sha256}.json"
    shutil.move(stored, stored.with_suffix(".away"))
    with world.serving_here(home) as running:
        done = running.finished(submission.id)
        assert done["state"] == "failed"
        assert done["message"] == PUBLIC_FAILURE
        assert str(home) not in str(done)
        assert "no such file" not in str(done)
        log = running.log.read_text()
        assert "Traceback" in log
        assert f"{stored}: no such file" in log
        assert running.rows() == []
        again = running.submitted(content)
        assert again["state"] == "published"


def test_while_files_cannot_be_written_uploads_are_refused_in_json(home: Path) -> None:
    content = world.as_bytes(world.rank_file(5, "Patient"))
    with world.serving_here(home) as running:
        (home / "files/incoming").write_bytes(b"in the way")
        refused = running.upload(content)
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "files-unavailable"
        assert str(home) not in refused.text
        assert "files/incoming: File exists" in running.log.read_text()
        assert running.get("/health").json()["waiting"] == 0
        (home / "files/incoming").unlink()
        assert running.submitted(content)["state"] == "published"


def test_a_packed_file_is_given_back_packed(home: Path) -> None:
    content = gzip.compress(world.as_bytes(world.rank_file(6, "Packed")), mtime=0)
    with world.serving_here(home) as running:
        file = running.get(running.submitted(content)["file"])
        assert file.content == content
        assert file.headers["content-type"] == "application/gzip"
        assert file.headers["content-disposition"].endswith('.json.gz"')


def test_a_second_server_on_the_port_says_so(home: Path, tmp_path: Path) -> None:
    with world.serving_here(home) as running:
        port = running.url.rsplit(":", maxsplit=1)[1]
        other = tmp_path / "other"
        done = world.cir("leaderboard", "serve", "--port", port, "--home", str(other), code=2)
        assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
        assert "Fix:" in done.stderr
        assert "Traceback" not in done.stderr
        assert running.get("/health").status_code == 200


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    done = world.cir("leaderboard", "serve", "--port", "0", "--home", str(blocked / "home"), code=2)
    assert "cannot be used as the leaderboard's home" in done.stderr
    assert "Traceback" not in done.stderr
