"""docs/language.md: its figures are what the entries score, its options are those of the command."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from cir_here import cir

import submissions
from submissions import RunOptions
from submissions.commands.run import run_command
from submissions.entries import folder
from submissions.methods.sc4cir import PROCESSES, TOP
from submissions.scoring.score_report import ScoreReport

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
VAL, SESSIONS = "shapes-val.json.gz", "shapes-multiturn_val.json.gz"


def scored(name: str) -> ScoreReport:
    report = submissions.score(folder() / name)
    assert isinstance(report, ScoreReport)
    return report


def cells(start: str) -> list[str]:
    """The cells of the first line of a table that begins so."""
    (line, *_) = (line for line in PAGE.splitlines() if line.startswith(start))
    return [cell.strip() for cell in line.strip("|").split("|")]


def shown(after: ScoreReport, before: ScoreReport, metric: str) -> tuple[str, str]:
    """A number and its difference as the page says them."""
    (pair,) = submissions.compare([after, before], metrics=[metric]).pairs
    found = pair.differences[metric]
    low, high = (100 * end for end in (found.interval.low, found.interval.high))
    return f"{100 * after.metrics[metric]:.1f}", f"{100 * found.difference:+.1f} [{low:+.1f}, {high:+.1f}]"


def test_the_row_of_the_whole_sum_is_what_the_entry_scores() -> None:
    after, before = scored(f"image_text_sum-shapes-sc4cir.{VAL}"), scored(f"image_text_sum-shapes.{VAL}")
    row, nothing = cells("| `s1+s2+s3` |"), cells("| none, and `s1` |")
    for place, metric in ((1, "recall@10"), (2, "recall_subset@1"), (3, "map@10"), (6, "pnr_map@10")):
        assert row[place] == f"{100 * after.metrics[metric]:.1f}", metric
        assert nothing[place] == f"{100 * before.metrics[metric]:.1f}", metric
    for place, metric in ((3, "map@10"), (6, "pnr_map@10")):
        assert tuple(row[place : place + 2]) == shown(after, before, metric)
        assert float(row[place + 1].partition("[")[2].partition(",")[0]) > 0, "above zero"


def test_the_row_of_sessions_is_what_the_entry_scores() -> None:
    after = scored(f"image_text_sum-shapes-sc4cir.{SESSIONS}")
    before = scored(f"image_text_sum-shapes-weighted.{SESSIONS}")
    row = cells("| each turn |")
    for place, metric in ((1, "hits_auc@10"), (3, "final_recall@10")):
        assert tuple(row[place : place + 2]) == shown(after, before, metric)


@pytest.mark.parametrize(
    "name", [name for name in inspect.signature(RunOptions).parameters if "rerank" in name]
)
def test_every_option_is_on_the_page_and_in_the_command(name: str) -> None:
    assert name in inspect.signature(run_command).parameters
    row = next(line for line in PAGE.splitlines() if f"| `{name}` |" in line)
    assert f"{name}:" in cir("run", "--write-config").stdout
    option = f"--{name.replace('_', '-')}"
    assert (f"`{option}" in row) == bool(re.search(rf"{option}\b(?!-)", cir("run", "--help").stdout))
    if name == "rerank_top":
        assert f"| {TOP}, as in the paper |" in row
    if name == "rerank_processes":
        assert re.findall(r"`(s\d)`", row) == list(PROCESSES)
