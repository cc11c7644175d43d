"""docs/first_use.md: each recipe runs from its first block to its last."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from docs_shell import ROOT, Shell

import cir_datasets

TEXT = (ROOT / "docs" / "first_use.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^## (I .*?)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
WRITTEN = {
    "I have a model": ["mine.json", "sum.json"],
    "I write the paper": ["differences.svg", "flips.jsonl", "differences.html"],
}


def blocks(recipe: str) -> list[tuple[str, str]]:
    """What a reader runs: the language and the text of each block."""
    return re.findall(r"^```(sh|python)\n(.*?)^```", RECIPES[recipe], re.MULTILINE | re.DOTALL)


def test_there_are_two_recipes() -> None:
    assert set(RECIPES) == set(WRITTEN)


def run_blocks(shell: Shell, found: list[tuple[str, str]]) -> dict[str, str]:
    said = {}
    for language, text in found:
        if name := re.match(r"# (\w+\.py)\n", text):
            (shell.folder / name[1]).write_text(text, encoding="utf-8")
        elif language == "python":
            said[text] = shell.run(shlex.join([sys.executable, "-c", text]))
        else:
            said |= {line: shell.run(line) for line in text.splitlines()}
    return said


@pytest.mark.slow
@pytest.mark.parametrize("recipe", WRITTEN)
def test_a_recipe_runs_as_it_stands(recipe: str, tmp_path: Path) -> None:
    run_blocks(Shell(tmp_path), blocks(recipe))
    assert [name for name in WRITTEN[recipe] if not (tmp_path / name).stat().st_size] == []


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.skipif("CIR_DATA_HOME" not in os.environ, reason="CIR_DATA_HOME is not set: no real annotations")
def test_the_table_of_fashioniq_is_made_of_matrices(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```py\n(.*?)^```", RECIPES["I write the paper"], re.MULTILINE | re.DOTALL)
    random = np.random.default_rng(0)
    for category in ("dress", "shirt", "toptee"):
        benchmark = cir_datasets.load(f"fashioniq/{category}_val")
        scores = random.random((len(benchmark.query_ids), len(benchmark.gallery)), dtype=np.float32)
        np.save(tmp_path / f"theirs-{category}.npy", scores)
        columns = {image: column for column, image in enumerate(benchmark.gallery)}
        for row, query in enumerate(benchmark.rows()):
            scores[row, columns[query["target_image_id"]]] = 2
        np.save(tmp_path / f"ours-{category}.npy", scores)
    shell = Shell(tmp_path)
    shell.run(shlex.join([sys.executable, "-c", block]))
    table = shell.run("cir table ours.json theirs.json --for fashioniq")
    assert re.search(r"^ours( +100\.00\*){9}$", table, re.MULTILINE)
    assert re.search(r"^theirs( +\d\.\d\d_){9}$", table, re.MULTILINE)
    shell.environment["CIR_LEADERBOARD_HOME"] = str(tmp_path / "home")
    shell.run("cir leaderboard add ours.json theirs.json")
    board = shell.run("cir leaderboard show fashioniq/val")
    assert re.search(r"^1 .*ours +100\.00", board, re.MULTILINE)
