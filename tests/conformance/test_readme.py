"""What the README shows is what happens: its console blocks are run, and its Python blocks too."""

from __future__ import annotations

import doctest
import os
import re
import sys
from pathlib import Path

import pytest
from leaderboard_world.judging import judge_here
from programs import run_program

from leaderboard import boards
from leaderboard.commands.show import board_text
from leaderboard.intake import Cover, chunks_of
from leaderboard.server import Server
from leaderboard.settings import Settings
from submissions.entries import BENCHMARKS, entries

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(console|python)\n(.*?)^```", README, flags=re.M | re.S)


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown below it."""
    parts = re.split(r"^\$ (.*)$", block, flags=re.M)
    return [(command, output.strip()) for command, output in zip(parts[1::2], parts[2::2], strict=True)]


def test_the_readme_shows_something() -> None:
    assert {kind for kind, _ in BLOCKS} == {"console", "python"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


def test_console_blocks_of_the_readme_print_what_they_show(folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    checker = doctest.OutputChecker()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    shown = [pair for kind, block in BLOCKS if kind == "console" for pair in commands(block)]
    assert shown
    for command, expected in shown:
        done = run_program(["bash", "-c", command], cwd=folder, env=environment)
        assert checker.check_output(expected + "\n", done.stdout, flags), (
            f"$ {command}\n--- shown\n{expected}\n--- printed\n{done.stdout}{done.stderr}"
        )


BASELINES = ("random.", "image_only-", "text_only-")
"""How the files begin that `make run` puts up as baselines."""


@pytest.mark.slow
def test_python_blocks_of_the_readme_run(folder: Path) -> None:
    code = "\n".join(block for kind, block in BLOCKS if kind == "python")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    run_program([sys.executable, "-c", code], cwd=folder, env=environment)


def test_the_readme_shows_the_boards_that_make_run_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    judge_here(monkeypatch)
    opened = Server.open(Settings(tmp_path / "home"))
    try:
        for entry in entries():
            board = boards.board(entry.benchmark)
            cover = Cover(file_name=entry.file, baseline=entry.file.startswith(BASELINES))
            submission, _ = opened.intake.take(board.id, chunks_of(entry.path), cover)
            assert opened.worker.process(submission).state == "published"
        ranked = [boards.board(benchmark) for benchmark in BENCHMARKS]
        shown = [board_text(board, opened.tables.refresh(board).view) for board in ranked]
    finally:
        opened.close()
    (block,) = re.findall(r"^```text\n\$ make run\n(.*?)^```", README, flags=re.M | re.S)
    printed = block[block.index("Shapes, single-turn") : block.index("Real benchmarks")].strip()
    assert doctest.OutputChecker().check_output(printed, "\n\n".join(shown), doctest.ELLIPSIS)
