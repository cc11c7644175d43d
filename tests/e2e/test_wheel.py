"""The built wheel, installed alone into a clean environment, lists, scores, serves and runs the notebooks."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from programs import run_program

ROOT = Path(__file__).resolve().parents[2]

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
INSTALL = "%pip install --quiet cir-benchmarks"

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
    # Isolated: it would take the egg-info of a clone on its path for an installation.
    pip = [str(environment / "bin" / "python"), "-I", "-m", "pip", "install", "--quiet", "--no-compile"]
    by_name = ["--find-links", str(wheel.parent), "cir-benchmarks[leaderboard]", "ipykernel"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), *by_name], check=True)
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
    listed = run_program([cir, "datasets", "list", "--json"], env=environment, cwd=home)
    assert "cirr/val" in {row["id"] for row in json.loads(listed.stdout)}
    run = home / "random.json"
    subprocess.run(
        [cir, "run", "--benchmark", "shapes/val", "--method", "random", "--out", str(run)],
        env=environment,
        cwd=home,
        check=True,
        capture_output=True,
    )
    scored = run_program([cir, "score", str(run), "--json"], env=environment, cwd=home)
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


def outputs(notebook: nbformat.NotebookNode) -> list[str]:
    """What the cells print on stdout and return, as plain text; what pip and progress say is left out."""
    found = []
    for cell in notebook.cells:
        # A kernel on a busy machine hands one cell's prints over in several pieces.
        parts = [] if cell.source == INSTALL else cell.get("outputs", [])
        printed = [each["text"] for each in parts if each.get("name") == "stdout"]
        returned = [each.get("data", {}).get("text/plain", "") for each in parts]
        found += [text.strip() for text in ("".join(printed), *returned)]
    return [text for text in found if text]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows_from_its_first_cell(
    path: Path, clean: tuple[Path, dict[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_folder, environment, _ = clean
    kernel = tmp_path / "kernels" / "clean"
    kernel.mkdir(parents=True)
    command = [str(bin_folder / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(
        json.dumps({"argv": command, "display_name": "clean", "language": "python"}), encoding="utf-8"
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    shown = outputs(stored)
    code = [cell.source for cell in stored.cells if cell.cell_type == "code"]
    client = NotebookClient(
        nbformat.read(path, as_version=4),
        timeout=600,
        kernel_name="clean",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    environment = {**environment, "PATH": f"{bin_folder}{os.pathsep}{environment['PATH']}"}
    fresh = client.execute(env=environment)
    assert code[0] == INSTALL
    assert len(shown) >= 3
    assert outputs(fresh) == shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_names_no_folder_of_a_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"/(?:home|root|work|tmp|Users)/\S*", text) == []
    assert '"name": "stderr"' not in text


def _get(url: str) -> object:
    for _ in range(120):
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    raise AssertionError(f"{url} did not answer within a minute")
