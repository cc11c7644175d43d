"""Every table and figure of the four papers has a command, and the command runs."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import yaml
from benchmark_world.suite import write_home, write_pictures
from docs_shell import ROOT, Shell, parsed, section

from examples.clips import write_clips

PAPERS = yaml.safe_load((ROOT / "docs" / "papers.yaml").read_text(encoding="utf-8"))
ROWS = [
    pytest.param(
        row,
        id=f"{paper}, {row['what'].partition(':')[0]}",
        marks=[pytest.mark.slow] if row["command"].startswith(("cir make", "cir train")) else [],
    )
    for paper, rows in PAPERS.items()
    for row in rows
    if "command" in row
]
PREPARED = (
    "cir run -b shapes/val -m random -o run.json",
    "cir run -b shapes/multiturn_val -m random -o sessions.json",
    "cir multiround -b shapes/val -m random -s oracle --limit 3 -o dialogue.jsonl",
    "cir multiround -b shapes/val -m image_text_sum_pixels -s oracle --limit 3 -o other.jsonl",
)
NUMBERS = {
    "CIRCLED": {"Table": range(1, 8), "Fig": range(1, 10)},
    "CIRR": {"Table": range(1, 10), "Fig": range(1, 13)},
    "FISD": {"Table": range(1, 9), "Fig": range(1, 15)},
    "ZeroSight": {"Table": range(1, 14), "Fig": range(1, 10)},
}
"""As the papers count them."""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder = tmp_path_factory.mktemp("papers")
    tiny = {"caption_rule": "trim_and", "hidden_size": 8, "epochs": 3, "patience": 1, "batch_size": 4}
    tiny |= (few := {"epoch_steps": 1, "threads": 1})
    for name, options in {"tiny": tiny, "few": few, "paper": {"templates": "paper"}}.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(options), "utf-8")
    for split in ("train", "val"):
        write_home(folder / "home", split)
    write_pictures(folder / "pictures")
    shell = Shell(folder, CIR_DATA_HOME=str(folder / "home"), CIR_VERIFICATION_MODE="no_checks")
    small = ("layers", "heads", "hidden_size", "feed_forward", "epoch_steps", "threads")
    (folder / "small.yaml").write_text("".join(f"{name}: 1\n" for name in small), "utf-8")
    page = section("make.md", "Aspects, as FISD")
    (captions,) = re.findall(r"^printf '%s\\n' (.+) > captions.txt$", page, re.MULTILINE)
    (folder / "captions.txt").write_text("\n".join(shlex.split(captions)), "utf-8")
    write_clips(folder / "videos", 3)
    for command in PREPARED:
        shell.run(command)
    return shell


@pytest.mark.parametrize("row", ROWS)
def test_a_command_of_the_papers_table_runs(
    row: dict[str, Any], shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shell.folder)  # where the files of its options are
    assert parsed(row["command"]).command.name
    shell.run(row.get("small", row["command"]))


@pytest.mark.parametrize("paper", NUMBERS)
def test_no_table_and_no_figure_of_a_paper_is_without_a_row(paper: str) -> None:
    listed: dict[str, set[int]] = {"Table": set(), "Fig": set()}
    for row in PAPERS[paper]:
        for kind, numbers in re.findall(r"\b(Table|Fig)s?\.? ((?:\d+(?:-\d+)?(?:, )?)+)", row["what"]):
            for first, last in re.findall(r"(\d+)(?:-(\d+))?", numbers):
                listed[kind] |= {*range(int(first), int(last or first) + 1)}
    assert listed == {kind: set(numbers) for kind, numbers in NUMBERS[paper].items()}
