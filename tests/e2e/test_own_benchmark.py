"""docs/your_benchmark.md from its first command to a board, and a package that brings a benchmark."""

from __future__ import annotations

import doctest
import json
import os
import re
import sys
from pathlib import Path

import forked
import pytest
from docs_shell import ROOT, Shell, commands

PAGE = ROOT / "docs" / "your_benchmark.md"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    caches = {name: str(tmp_path / name) for name in ("CIR_CACHE_HOME", "HF_HOME", "CIR_LEADERBOARD_HOME")}
    return Shell(tmp_path, **caches, HF_HUB_OFFLINE="1")


@pytest.mark.slow
def test_the_page_leads_from_nothing_to_a_board(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = {line: shell.run(line) for line in commands(PAGE.name, "From nothing to a board")}
    check = printed["cir datasets check mine"]
    assert "mine/test: 4 queries" in check
    assert f"export CIR_BENCHMARKS={tmp_path / 'mine'}" in check
    assert re.search(r"^mine/test +4 ", printed["cir datasets list"], re.MULTILINE)
    scores = {name: shell.run(f"cir score {name}.json --json") for name in ("random", "sum")}
    values = {name: json.loads(text)["metrics"]["recall@50"] for name, text in scores.items()}
    assert 0 <= values["random"] <= 1
    assert 0 < values["sum"] <= 1
    assert (tmp_path / "published/mine/test/test-00000-of-00001.parquet").is_file()

    boards = tmp_path / "CIR_LEADERBOARD_HOME" / "boards"
    boards.mkdir(parents=True)
    (board,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (boards / "mine.yaml").write_text(board)
    said = shell.run("cir leaderboard add random.json sum.json")
    assert "mine/test" in said + shell.run("cir leaderboard show mine/test")
    shell.run("cir leaderboard export-html mirror")
    page, about = (
        (tmp_path / "mirror/b/mine/test" / name).read_text(encoding="utf-8")
        for name in ("index.html", "tab-about.html")
    )
    assert "the queries and answers lie in the makers" in page
    assert "shows the pictures on a machine that has them" in page
    assert "its makers:" not in about
    assert "not published" not in about
    assert "What does not compare" not in about
    assert "licence not stated" in about

    for name in ("CIR_CACHE_HOME", "HF_HOME", "CIR_BENCHMARKS"):
        monkeypatch.setenv(name, shell.environment[name])
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert (failed, tried) == (0, 23)


@pytest.mark.slow
def test_sessions_run_and_score(shell: Shell, tmp_path: Path) -> None:
    shell.run("cir datasets new talks --sessions --out folders/talks")
    assert "of 4 turns" in shell.run("cir datasets check folders/talks")
    shell.environment["CIR_BENCHMARKS"] = str(tmp_path / "folders")
    shell.run("cir run --benchmark talks/test --method random --out talks.json")
    assert "hits_auc@10" in json.loads(shell.run("cir score talks.json --json"))["metrics"]


PACKAGE = {
    "theirs/__init__.py": "from pathlib import Path\n\n"
    "def where():\n    return Path(__file__).parent / 'data'\n",
    "theirs-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: theirs\nVersion: 1\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("value", ["theirs:where", "theirs.data", "theirs"])
def test_a_package_brings_a_benchmark_by_an_entry_point(shell: Shell, tmp_path: Path, value: str) -> None:
    site = tmp_path / "site"
    entry = f"[cir_benchmarks.benchmarks]\nsome = {value}\n"
    for name, text in {**PACKAGE, "theirs-1.dist-info/entry_points.txt": entry}.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    shell.run("cir datasets new brought --out site/theirs/data")
    (site / "theirs/data/__init__.py").touch()
    shell.environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(site)])
    assert "brought/test: 4 queries" in shell.run("cir datasets prepare brought --no-hub-cache")


def test_an_entry_point_that_fails_hides_no_other_benchmark(shell: Shell, tmp_path: Path) -> None:
    about = tmp_path / "site" / "bad-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[cir_benchmarks.benchmarks]\nbad = no_such_module:where\n")
    environment = {**shell.environment, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path / "site")])}
    command = [sys.executable, "-m", "leaderboard.cli", "datasets"]
    done = forked.run([*command, "list"], env=environment, capture_output=True, text=True, check=True)
    assert "shapes/val" in done.stdout
    assert "the entry point bad: no_such_module:where failed: ModuleNotFoundError" in done.stderr
