"""docs/training.md: its figures on shapes, and whether training helps, against the strongest baseline."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import submissions
from submissions import make_rank_file
from submissions.entries import entries
from submissions.scoring.score_report import ScoreReport

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
METRICS = ("recall@1", "recall@10", "map@10")
MAIN = "recall@10"
PIXELS, SUM = "`image_only_pixels`", "`image_text_sum`"
BASELINES = {
    "`text_only`": "text_only-shapes",
    "`image_only`": "image_only-shapes",
    PIXELS: "image_only-pixels",
    SUM: "image_text_sum-shapes",
}
HEADS = ("concat", "pic2word", "magiclens")
POINTS = 1.5
"""Other processors and versions of torch round otherwise, which may move some of 300 queries by a rank."""


@pytest.fixture(scope="module")
def baselines() -> dict[str, ScoreReport]:
    paths = {entry.file: entry.path for entry in entries("shapes/val")}
    return {
        label: submissions.score(paths[f"{file}.shapes-val.json.gz"]) for label, file in BASELINES.items()
    }


def rows(head: str) -> list[list[str]]:
    """Cells of the page's table with that head."""
    table = PAGE.partition(f"| {head} |\n")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]


def scores() -> dict[str, list[str]]:
    return {cells[0]: cells[1:] for cells in rows(f"method | {' | '.join(METRICS)}")}


def paired() -> dict[tuple[str, str], list[str]]:
    return {
        (cells[0], cells[1]): cells[2:]
        for cells in rows("method | against | difference | p (Holm) | verdict")
    }


def numbers(text: str) -> list[float]:
    return [float(each) for each in re.findall(r"[-+]?\d+\.\d+", text)]


def test_the_rows_of_baselines_are_what_the_entries_score(
    generate: Any, baselines: dict[str, ScoreReport]
) -> None:
    for row in generate.score_rows(baselines, METRICS).values():
        assert f"{row}\n" in PAGE


def test_the_strongest_baseline_of_one_half_alone_is_the_one_compared_with(
    baselines: dict[str, ScoreReport],
) -> None:
    alone = {label: report.metrics[MAIN] for label, report in baselines.items() if label != SUM}
    assert max(alone, key=lambda label: alone[label]) == PIXELS
    heads = [f"`{name}`" for name in HEADS]
    wanted = [(label, PIXELS) for label in (SUM, *heads)] + [(label, SUM) for label in heads]
    assert list(paired()) == wanted


def test_differences_are_those_of_the_rows_and_words_follow_from_the_paired() -> None:
    shown = {label: numbers(cells[1])[0] for label, cells in scores().items()}
    for (one, other), (difference, p, verdict) in paired().items():
        value, low, high = numbers(difference)
        assert value == pytest.approx(shown[one] - shown[other], abs=0.11)
        assert low < value < high
        significant = p.startswith("<") or float(p) <= 0.05
        assert verdict == (("better" if value > 0 else "worse") if significant else "not significant")
    verdicts = {pair: cells[2] for pair, cells in paired().items()}
    behind = [one for one, other in verdicts if other == PIXELS and verdicts[one, other] != "better"]
    assert behind == ["`pic2word`"]
    assert "`pic2word` does not beat the image of pixels at `recall@10`" in PAGE
    assert {verdict for (_, other), verdict in verdicts.items() if other == SUM} == {"not significant"}
    assert re.search(r"None of the three differs significantly from the\s+plain sum", PAGE)


@cache
def trained(name: str, *more: str) -> ScoreReport:
    """The score after a training of the page, by the very command, with more options behind it."""
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    shown = re.search(rf"^\$ cir (train {name} .*shapes/train.*)$", PAGE.replace("\\\n", " "), re.M)
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/head"
        command = [*shlex.split(shown[1]), "--out", out, "--threads", "1", "--device", "cpu", *more]
        for line in re.findall(r"^\$ ((?:echo|printf) .+ > \w+\.yaml)$", PAGE, re.MULTILINE):
            subprocess.run(["sh", "-c", line], cwd=folder, check=True)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        run = [sys.executable, "-m", "leaderboard.cli", *command]
        subprocess.run(run, cwd=folder, env=environment, check=True)
        made = make_rank_file("shapes/val", name, checkpoint=out, device="cpu", workers=0)
    return submissions.score(made)


def check_rows(generate: Any, heads: Sequence[str]) -> dict[str, ScoreReport]:
    reports = {f"`{name}`": trained(name) for name in heads}
    for label, row in generate.score_rows(reports, METRICS).items():
        assert numbers(row) == pytest.approx(numbers(" ".join(scores()[label])), abs=POINTS)
    return reports


@pytest.mark.exhaustive
def test_the_rows_of_heads_are_what_their_trainings_give(
    generate: Any, baselines: dict[str, ScoreReport]
) -> None:
    both = {label: baselines[label] for label in (PIXELS, SUM)} | check_rows(generate, HEADS)
    found = generate.paired_rows(both, MAIN)
    for pair, cells in paired().items():
        again = [cell.strip() for cell in found[pair].strip("|").split("|")][2:]
        assert numbers(again[0]) == pytest.approx(numbers(cells[0]), abs=POINTS)
        assert again[2] == cells[2], pair


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", HEADS)
def test_a_trained_head_beats_itself_untrained_and_its_rivals(
    name: str, baselines: dict[str, ScoreReport]
) -> None:
    """Against no training, and against the strongest baseline where the page says so."""
    untrained = trained(name, "--steps", "1", "--learning-rate", "1e-12")
    rivals = [untrained, baselines["`image_only`"], baselines["`text_only`"]]
    if paired()[f"`{name}`", PIXELS][2] == "better":
        rivals.append(baselines[PIXELS])
    for rival in rivals:
        (pair,) = submissions.compare([trained(name), rival], metrics=[MAIN]).pairs
        assert pair.differences[MAIN].significant
        assert pair.differences[MAIN].difference > 0
