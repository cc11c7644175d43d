"""Downloads, preparations and hashing that are killed leave nothing wrong, and go on where they were."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets_pictures as pictures
import datasets_publishers as made
import forked
import pytest
from http_hub import Fault, Hub
from interruptible import wait_for
from PIL import Image

import cir_datasets
from cir_datasets import registry
from cir_datasets.images.hashes import facts_file

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = "data/cirr_val.json"
IDS = made.cirr_images("val")
VAL = registry.spec("cirr/val")

pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)


@pytest.fixture
def publisher(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A Hub that holds made-up sessions of CIRCLED."""
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    sessions = made.write_circled(tmp_path / "published", "cirr_val") / SESSIONS
    hub.repository("tk1441/CIRCLED").commit({SESSIONS: sessions.read_bytes()})
    return hub


def load() -> cir_datasets.Benchmark:
    return cir_datasets.load("circled/cirr_val", verification_mode="no_checks")


def kept(tmp_path: Path) -> list[str]:
    """Everything below the cache that is a file."""
    return [str(path) for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def known() -> list[str]:
    """The files that were read, as they are kept."""
    if not facts_file(VAL).is_file():
        return []
    with sqlite3.connect(facts_file(VAL)) as file:
        try:
            return [os.fsdecode(key) for (key,) in file.execute("SELECT key FROM entries")]
        except sqlite3.OperationalError:  # the table is not there yet
            return []


def hashed(roots: Any, **options: Any) -> Any:
    return cir_datasets.hash_images("cirr/val", roots, verification_mode="no_checks", **options)


KILLED = """
import os, signal, sys
from pathlib import Path
from cir_datasets.common.staging import staging_folder
with staging_folder(Path(sys.argv[1]), sys.argv[2], error=OSError, fix='') as folder:
    (folder / "file").write_bytes(bytes(1000))
    print(folder, flush=True)
    sys.stdin.read()
"""


def left_by(parent: Path, prefix: str) -> subprocess.Popen[str]:
    """A process in the middle of its work in a staging folder."""
    command = [sys.executable, "-c", KILLED, str(parent), prefix]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return forked.Process(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, **pipes)


def test_what_killed_downloads_and_preparations_left_is_swept_and_nothing_of_live_ones(
    publisher: Hub, tmp_path: Path
) -> None:
    places = {
        ".partial-": tmp_path / "cache/sources/circled/other/data",
        ".making-": tmp_path / "cache/prepared/circled/circo_val/1",
    }
    dead, alive = [], []
    workers = []
    for prefix, parent in places.items():
        for group in (dead, alive):
            worker = left_by(parent, prefix)
            workers.append(worker)
            group.append(Path(worker.stdout.readline().strip()))
            if group is dead:
                worker.kill()
                worker.wait()
    # Of versions without locks: an old one is a leftover, a young one may be anybody's.
    old, young = (places[".making-"] / f".making-{name}" for name in ("old", "young"))
    for folder in (old, young):
        (folder / "made").mkdir(parents=True)
    os.utime(old, (1_700_000_000, 1_700_000_000))
    try:
        assert [path.is_dir() for path in (*dead, *alive)] == [True] * 4
        assert len(load()) == 2
        assert [path.is_dir() for path in dead] == [False, False]
        assert [(path / "file").is_file() for path in alive] == [True, True]
        assert (old.exists(), young.exists()) == (False, True)
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def test_a_killed_download_leaves_nothing_after_the_next_one(publisher: Hub, tmp_path: Path) -> None:
    publisher.faults[SESSIONS] = Fault("trickle")
    code = "import cir_datasets; cir_datasets.load('circled/cirr_val', verification_mode='no_checks')"
    with forked.Process([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}) as killed:
        wait_for(lambda: [name for name in kept(tmp_path) if name.endswith("/file")], killed)
        killed.kill()
    assert [name for name in kept(tmp_path) if ".partial-" in name]
    publisher.faults.clear()
    assert len(load()) == 2
    assert not [name for name in kept(tmp_path) if ".partial-" in name or ".making-" in name]


@pytest.mark.slow
def test_hashing_that_was_killed_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("CIR_DATA_HOME", str(home))
    made.write_cirr(home, "val")
    images = tmp_path / "many"
    noise = random.Random(0)
    ids = [f"dev-{number}-0-img0" for number in range(240)]
    for image_id in ids:
        path = images / f"{image_id}.png"
        path.parent.mkdir(exist_ok=True)
        Image.frombytes("RGB", (160, 160), noise.randbytes(160 * 160 * 3)).save(path)
    made.write(
        home / "cirr/image_splits/split.rc2.val.json",
        {one: f"./dev/{one}.png" for one in ids} | {one: f"./dev/{one}.png" for one in IDS},
    )
    pictures.write_flat(images, IDS)
    whole = hashed(images, out=tmp_path / "whole.parquet").file.read_bytes()
    facts_file(VAL).unlink()

    out = tmp_path / "resumed.parquet"
    command = [sys.executable, "-W", "ignore", "-m", "leaderboard.cli", "datasets", "hash", "cirr/val"]
    command += ["--root", str(images), "--out", str(out), "--workers", "1", "--no-checks"]
    run = forked.Process(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    wait_for(lambda: len(known()) >= 60, run)
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    assert not out.exists()

    done = known()
    assert 60 <= len(done) < 248
    # What was hashed is not read again: spoil it, and let size and time say that it is the same.
    spoilt = Path(done[0])
    status = spoilt.stat()
    spoilt.write_bytes(b"x" * status.st_size)
    os.utime(spoilt, ns=(status.st_atime_ns, status.st_mtime_ns))

    report = hashed(images, out=out)
    assert report.read == 248 - len(done)
    assert out.read_bytes() == whole
    assert len(known()) == 248
