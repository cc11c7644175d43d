"""docs/scores.md: its Python runs, and its table is whole."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from benchmark_world.user_scores import small_suite
from docs_shell import ROOT

import submissions
from submissions.commands.rank_inputs import ENDINGS
from submissions.running import user_ids

TEXT = (ROOT / "docs" / "scores.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_the_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    scores, embeddings, lists, suite = blocks("python")
    exec(scores, {})
    assert 0 <= float(capsys.readouterr().out) < 0.05
    for block in (embeddings, lists):
        exec(block, {})
        assert capsys.readouterr().out == "300\n"
    own = small_suite()
    monkeypatch.setattr(user_ids, "loaded_benchmark", own.__getitem__)
    known: dict[str, object] = {"submissions": submissions}
    for benchmark in own.values():
        category = benchmark.id.partition("/")[2].partition("_")[0]
        known[f"{category}_queries"] = benchmark.query_ids
        known[f"{category}_images"] = benchmark.gallery
        known[f"{category}_scores"] = np.zeros((len(benchmark.query_ids), len(benchmark.gallery or ())))
    exec(suite, known)
    found = submissions.read("ours.json")
    assert isinstance(found, submissions.RankBundle)
    assert [run.benchmark for run in found.runs] == list(own)


def test_the_table_of_files_has_the_endings_that_are_read() -> None:
    for argument, wanted in {"scores": "--scores", "query_ids": "--queries", "lists": "--lists"}.items():
        (row,) = re.findall(rf"^\| `{wanted}`.*$", TEXT, re.MULTILINE)
        assert [ending for ending in ENDINGS[argument] if f"`{ending}`" not in row] == []
