"""A full disk, a store that cannot be written, two servers on one store: refused in JSON, nothing lost.

The disk is a real one: a file system in memory, which root may mount. Elsewhere these tests skip.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import leaderboard_world as world
import plain_http
import pytest
from programs import run_program

DISK_MIB = 24
MARGINS_KIB = (0, 4, 16, 64, 200, 400, 1000)
"""Room that is left on the disk."""
NO_DATA = {"CIR_DATA_HOME": ""}


def mount(*arguments: str) -> None:
    done = run_program(["mount", *arguments], code=None)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of one's own."""
    if os.geteuid():
        pytest.skip("root alone may mount a file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(folder))
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def filled(disk: Path, left: int) -> Path:
    """A file that takes all room but so many bytes."""
    ballast = disk / "ballast"
    ballast.unlink(missing_ok=True)
    with ballast.open("wb", buffering=0) as handle:
        with contextlib.suppress(OSError):
            while handle.write(b"x" * 4096):
                pass
        handle.truncate(max(0, handle.tell() - left))
    return ballast


def refused(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal, which is JSON and says nothing of the server's disk."""
    error = answer.json()["error"]
    assert set(error) == {"code", "message", "fix"}
    assert "/" not in error["message"]
    return answer.status_code, error["code"]


@pytest.mark.slow
def test_a_full_disk_refuses_and_loses_nothing(disk: Path) -> None:
    with world.serving(disk / "home", **NO_DATA) as running:
        acknowledged = [running.submitted(world.as_bytes(world.rank_file(1, "Before")))["id"]]
        said: Counter[Any] = Counter()
        for seed, margin in enumerate(MARGINS_KIB * 3, start=10):
            filled(disk, margin * 1024)
            answer = running.upload(world.as_bytes(world.rank_file(seed, f"Number {seed}")))
            if answer.status_code == 202:
                acknowledged.append(answer.json()["id"])
                said[202] += 1
            else:
                said[refused(answer)] += 1
            for path in ("/health", "/api/boards/shapes/val", "/", "/b/circo/val", f"/s/{acknowledged[0]}"):
                assert running.get(path).status_code == 200, path
        print(f"{dict(said)}; {len(acknowledged)} acknowledged")
        assert set(said) <= {202, (507, "files-unavailable"), (507, "no-space"), (503, "unavailable")}
        assert sum(count for found, count in said.items() if found != 202) >= len(MARGINS_KIB)
        filled(disk, 0)
        time.sleep(3)
        (disk / "ballast").unlink()
        ended = [running.finished(one, 180)["state"] for one in acknowledged]
        assert set(ended) == {"published"}
        assert running.submitted(world.as_bytes(world.rank_file(2, "After")))["state"] == "published"
        assert len(running.rows()) == len(acknowledged) + 1
        assert list((disk / "home/files/incoming").iterdir()) == []
        assert running.stop() == 0
        assert "Traceback" not in running.log.read_text()


@pytest.mark.slow
def test_a_disk_that_is_full_at_a_kill_loses_nothing(disk: Path) -> None:
    with world.serving(disk / "home", **NO_DATA) as running:
        acknowledged = [
            running.upload(world.as_bytes(world.rank_file(seed, f"Number {seed}"))).json()["id"]
            for seed in range(4)
        ]
        filled(disk, 0)
        time.sleep(1)
        running.process.kill()
        running.process.wait()
    (disk / "ballast").unlink()
    with world.serving(disk / "home", **NO_DATA) as running:
        assert {running.finished(one, 120)["state"] for one in acknowledged} == {"published"}
        assert len(running.rows()) == 4


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """The folder cannot be written, not even by root."""
    mount("--bind", str(folder), str(folder))
    try:
        mount("-o", "remount,ro,bind", str(folder))
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def come_again(send: Callable[[], Any]) -> Any:
    """What a sender does who is told so: a process that reads meanwhile may hold what cannot write."""
    for _ in range(60):
        answer = send()
        if answer.status_code != 503:
            break
        time.sleep(0.5)
    return answer


@pytest.mark.slow
def test_a_store_that_becomes_read_only_refuses_and_recovers(disk: Path) -> None:
    home = disk / "home"
    with world.serving(home, **NO_DATA) as running:
        rows = [running.submitted(world.as_bytes(world.rank_file(1, "Before")))["id"]]
        with read_only(home):
            for seed in (2, 3):
                answer = running.upload(world.as_bytes(world.rank_file(seed, "Meanwhile")))
                assert refused(answer) in {(503, "files-unavailable"), (503, "unavailable")}
            assert len(running.get("/api/boards/shapes/val").json()["rows"]) == 1
            changed = plain_http.post(
                f"{running.url}/api/submissions/{rows[0]}/unpublish", json={}, timeout=60
            )
            # A connection from before may still write.
            assert changed.status_code in (200, 503)
        sent = come_again(lambda: running.upload(world.as_bytes(world.rank_file(2, "After"))))
        assert sent.status_code in (200, 202)
        if changed.status_code == 200:
            url = f"{running.url}/api/submissions/{rows[0]}/publish"
            assert come_again(lambda: plain_http.post(url, json={}, timeout=60)).status_code == 200
        assert running.finished(sent.json()["id"])["state"] == "published"
        assert [row["method"]["name"] for row in running.rows()].count("Meanwhile") == 0
        assert len(running.rows()) == 2


@pytest.mark.slow
def test_a_read_only_store_is_said_at_the_start(disk: Path) -> None:
    home = disk / "home"
    with world.serving(home, **NO_DATA) as running:
        running.submitted(world.as_bytes(world.rank_file(1, "Before")))
        assert running.stop() == 0
    with read_only(home):
        done = world.cir("leaderboard", "serve", "--port", "0", "--home", str(home))
    assert done.returncode == 2
    assert str(home) in done.stderr
    assert "Fix:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_two_servers_on_one_store_share_the_work(tmp_path: Path) -> None:
    """Both take files at once, the same ones too; one is killed; the other ends everything, once."""
    contents = [world.as_bytes(world.rank_file(seed, f"Number {seed}")) for seed in range(16)]
    with (
        world.serving(tmp_path / "home", **NO_DATA) as one,
        world.serving(tmp_path / "home", **NO_DATA) as other,
    ):
        with ThreadPoolExecutor(4) as pool:
            sent = [pool.submit(server.upload, content) for content in contents for server in (one, other)]
            answers = [each.result() for each in sent]
        assert {answer.status_code for answer in answers} == {200, 202}
        assert [answer.status_code for answer in answers].count(202) == len(contents)
        one.process.kill()
        one.process.wait()
        ids = {answer.json()["id"] for answer in answers}
        assert len(ids) == len(contents)
        ended = [other.finished(each, 180) for each in ids]
        assert {each["state"] for each in ended} == {"published"}
        kinds = [[event["kind"] for event in each["events"]] for each in ended]
        assert all(each.count("scored") == each.count("published") == 1 for each in kinds)
        assert len(other.rows()) == len(contents)
