"""Downloads and preparations that are killed leave nothing wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets_publishers as made
import forked
import pytest
from http_hub import Fault, Hub
from waiting import wait_for

import cir_datasets

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = "data/cirr_val.json"

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


KILLED = """
import os, signal, sys
from pathlib import Path
from cir_datasets.common.atomic import staging_folder
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
        wait_for(lambda: [name for name in kept(tmp_path) if name.endswith("/file")], process=killed)
        killed.kill()
    assert [name for name in kept(tmp_path) if ".partial-" in name]
    publisher.faults.clear()
    assert len(load()) == 2
    assert not [name for name in kept(tmp_path) if ".partial-" in name or ".making-" in name]
