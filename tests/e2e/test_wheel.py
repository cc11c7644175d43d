"""The built wheel, installed alone into a clean environment, lists, scores and serves."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str], Path]:
    """A virtual environment that holds the wheel and nothing of this checkout, with an empty home."""
    home = tmp_path_factory.mktemp("home")
    environment = home / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), f"{wheel}[leaderboard]"], check=True)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("CIR_", "HF_", "PYTHON"))
    }
    return environment / "bin", {**kept, "HOME": str(home), "HF_HUB_OFFLINE": "1"}, home


def test_the_wheel_holds_the_data_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "cir_datasets",
        "cir_metrics",
        "leaderboard",
        "submissions",
    }
    for needed in (
        "cir_datasets/cards/cirr.yaml",
        "cir_datasets/sources/cirr.json",
        "cir_metrics/pnr_map/pnr_map.py",
        "cir_metrics/pnr_map/README.md",
        "cir_metrics/py.typed",
        "leaderboard/boards/shapes_val.yaml",
    ):
        assert needed in names


def test_it_lists_and_scores(clean: tuple[Path, dict[str, str], Path]) -> None:
    bin_folder, environment, home = clean
    cir = str(bin_folder / "cir")
    listed = subprocess.run(
        [cir, "datasets", "list", "--json"],
        env=environment,
        cwd=home,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "cirr/val" in {row["id"] for row in json.loads(listed.stdout)}
    run = home / "random.json"
    subprocess.run(
        [cir, "run", "--benchmark", "shapes/val", "--method", "random", "--out", str(run)],
        env=environment,
        cwd=home,
        check=True,
        capture_output=True,
    )
    scored = subprocess.run(
        [cir, "score", str(run), "--json"],
        env=environment,
        cwd=home,
        check=True,
        capture_output=True,
        text=True,
    )
    report = json.loads(scored.stdout)
    assert report["benchmark"] == "shapes/val"
    assert 0 <= report["metrics"]["recall@10"] < 0.05


def test_it_serves_and_stops(clean: tuple[Path, dict[str, str], Path]) -> None:
    bin_folder, environment, home = clean
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [str(bin_folder / "cir"), "leaderboard", "serve", "--port", str(port), "--home", str(home / "board")],
        env=environment,
        cwd=home,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        boards = _get(f"http://127.0.0.1:{port}/api/boards")
        assert "shapes/val" in json.dumps(boards)
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=300)
        assert page.status == 200
    finally:
        server.send_signal(signal.SIGINT)
        _, words = server.communicate(timeout=300)
    assert server.returncode == 0, words
    assert "Traceback" not in words


def _get(url: str) -> object:
    for _ in range(120):
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    raise AssertionError(f"{url} did not answer within a minute")
