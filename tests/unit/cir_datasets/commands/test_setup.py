"""`cir setup`: benchmarks and metrics in one go, for Python without our imports."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import datasets_publishers as made
import pytest
from click.testing import Result
from programs import run_program
from typer.testing import CliRunner

from cir_datasets.commands.setup import benchmarks_here
from cir_datasets.errors import SourceError
from cir_metrics.catalogue import METRICS
from cir_metrics.errors import UnknownNameError
from leaderboard.cli import build


class RefusingServer:
    """A port of this machine that ends every connection at once, and counts them."""

    def __init__(self) -> None:
        self.asked = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._refuse, daemon=True).start()

    def _refuse(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:  # closed: the test is over
                return
            self.asked += 1
            # Read first: a reset before the request is written reads as an answer of no bytes.
            connection.recv(65536)
            # Closed with a reset, as by a machine that does not want it.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()


@pytest.fixture
def refusing() -> Iterator[RefusingServer]:
    server = RefusingServer()
    yield server
    server.listener.close()


@pytest.fixture(autouse=True)
def home(refusing: RefusingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of publishers' folders; caches of this test alone; no server that answers."""
    import datasets
    import evaluate.config

    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_ENDPOINT", refusing.url)
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", refusing.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf/datasets"))
    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", str(tmp_path / "hf/modules"))
    monkeypatch.setattr(sys, "path", list(sys.path))  # evaluate puts its cache on it
    return tmp_path / "home"


def setup(*arguments: str) -> Result:
    return CliRunner().invoke(build(), ["setup", *arguments])


def states(folder: Path) -> dict[Path, tuple[int, int]]:
    """The files below a folder, each with what a new or rewritten file would not share."""
    return {
        path: (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")

WITHOUT_US = """
import datasets, evaluate, json, sys
found = datasets.load_dataset("cirr", "val", split="validation")
images = datasets.load_dataset("cirr", "val_images", split="validation")
assert "cir_datasets" not in sys.modules
print(json.dumps([found["query_id"][0], images.num_rows, evaluate.load("recall_at_k").name]))
"""


@pytest.mark.slow
def test_the_libraries_know_the_names_without_our_imports(home: Path, tmp_path: Path) -> None:
    made.write_cirr(home, "val")
    done = setup("cirr/val", "--no-checks")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("cirr/val: 3 queries, 8 images in the gallery, unpinned")
    assert f"metrics: {', '.join(sorted(METRICS))}" in done.stdout
    assert "Ready: 1 benchmark and 11 metrics." in done.stderr
    assert 'load_dataset("cirr", "val") and evaluate.load("pnr_map")' in done.stderr
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    said = run_program(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_US],
        cwd=elsewhere,
        env={**os.environ, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"},
    )
    assert json.loads(said.stdout) == ["900", 8, "recall_at_k"]


def test_a_second_call_writes_nothing(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.write_cirr(home, "val")
    made.write_circo(home, "val")
    first = setup("cirr/val", "circo/val", "cirr/val", "--no-checks")
    before = states(tmp_path)
    monkeypatch.chdir(home)  # which has a folder "cirr"
    again = setup("cirr/val", "circo/val", "cirr/val", "--no-checks")
    assert "Not from this folder: load_dataset takes cirr here for the data set. Fix:" in again.stderr
    assert "Not from this folder" not in first.output
    assert states(tmp_path) == before
    assert "there already" not in first.output
    assert again.stdout.count("was there already") == 2
    assert "Ready: 2 benchmarks (2 there already) and 11 metrics." in again.stderr


def test_a_benchmark_that_fails_stops_neither_the_others_nor_the_metrics(home: Path) -> None:
    made.write_cirr(home, "val")
    done = setup("cirr/test1", "cirr/val", "circo", "--no-checks", "--json")
    found = json.loads(done.stdout)
    assert [one["id"] for one in found["benchmarks"]] == ["cirr/val"]
    assert found["failed"] == ["cirr/test1", "circo/val", "circo/test"]
    assert sorted(METRICS) == sorted(found["metrics"])
    assert "Failed: cirr/test1, circo/val, circo/test." in done.stderr
    assert isinstance(done.exception, SourceError)
    assert "3 of 4 benchmarks could not be prepared" in str(done.exception)


def test_without_a_name_all_are_meant_whose_files_are_here(home: Path) -> None:
    made.write_circo(home, "val", gallery=False)
    made.write_cirr(home, "val")
    of_cirr = ("val", "dialogues_val", "dialogues_across_val")
    here = {name for name in benchmarks_here() if not name.startswith("shapes/")}
    assert here == {"circo/val", *(f"cirr/{config}" for config in of_cirr)}
    assert "shapes/val" in benchmarks_here()


def test_an_unknown_name_is_said_before_anything_is_done(tmp_path: Path) -> None:
    done = setup("shapes/val", "cir/val")
    assert isinstance(done.exception, UnknownNameError)
    assert not (tmp_path / "cache").exists()
    assert not (tmp_path / "hf").exists()


def test_a_server_that_cannot_be_reached_is_asked_for_one_file(refusing: RefusingServer) -> None:
    done = setup("cirr", "circo", "circled/cirr_val")
    assert "10 of 10 benchmarks could not be prepared" in str(done.exception)
    assert refusing.asked == 3, "three attempts for the first file, none for the nine others"
    assert done.stderr.count("the server is not asked again") == 9


@pytest.mark.parametrize(("offline", "asked"), [(True, 0), (False, 1)], ids=["offline is set", "not set"])
def test_filling_the_caches_asks_the_hub_once_at_most(
    offline: bool, asked: int, refusing: RefusingServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    made.write_cirr(home, "val")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    done = setup("cirr/val", "--no-checks")
    assert done.exit_code == 0, done.output
    assert refusing.asked == asked
    assert ("Set HF_HUB_OFFLINE=1" in done.stderr) != offline
