"""`cir make circled`: what it writes is a benchmark, and what it asks is asked once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import cir_datasets
from cir_datasets.construction.folder_check import check_folder
from leaderboard.cli import build

FEW = ("make", "circled", "--benchmark", "shapes/val", "--language", "oracle", "--k", "3", "--limit", "30")


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cir(*arguments: str) -> Any:
    done = CliRunner().invoke(build(), list(arguments))
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.slow
def test_the_result_is_a_benchmark_that_loads_and_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = cir(*FEW, "--out", "made", "--name", "mine")
    assert "Sessions by filter" in done.stderr
    folder = tmp_path / "made/benchmark"
    assert check_folder(folder, registered=False).ok
    monkeypatch.setenv("CIR_BENCHMARKS", str(folder))
    loaded = cir_datasets.load("mine/test")
    published = json.loads((tmp_path / "made/circled.json").read_text())
    assert loaded.query_ids == [row["session_id"] for row in published]
    assert loaded.rows() == published
    cir("run", "--benchmark", "mine/test", "--method", "random", "--out", "run.json")
    assert "hits@10" in cir("score", "run.json").stdout
    before = {path: path.read_bytes() for path in sorted((tmp_path / "made").rglob("*")) if path.is_file()}
    cir(*FEW, "--out", "made", "--name", "mine")
    assert {path: path.read_bytes() for path in before} == before


def test_a_dry_run_writes_nothing_and_says_calls_tokens_and_hours(tmp_path: Path) -> None:
    said = cir(*FEW, "--out", "made", "--dry-run").stdout
    for words in ("calls", "tokens of questions", "hours", "30 queries", "at most"):
        assert words in said
    assert not (tmp_path / "made").exists()
