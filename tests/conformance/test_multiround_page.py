"""docs/dialogue.md: its commands run on shapes, or are at least read by the commands that they name."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cir_here import cir
from typer.main import get_command

from leaderboard.cli import build

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "dialogue.md").read_text(encoding="utf-8")
WRITTEN = re.findall(r"^cir .+$", PAGE, re.MULTILINE)
OPTIONS = sorted(set(re.findall(r"`(--[^` ]+)", PAGE)))


def parsed(command: str) -> Any:
    """A command's arguments as it reads them; nothing is run."""
    root: Any = get_command(build())
    words = shlex.split(command)[1:]
    while words and hasattr(root, "commands"):
        root, words = root.commands[words[0]], words[1:]
    return root.make_context(root.name, list(words))


@pytest.mark.parametrize("command", WRITTEN)
def test_every_command_is_read_by_the_command_that_it_names(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in re.findall(r"^printf .+$", PAGE, re.MULTILINE):  # the files of options
        subprocess.run(["sh", "-c", line], check=True)
    assert parsed(command).params


def test_the_papers_setting_takes_four_commands() -> None:
    (section,) = re.findall(
        r"^## The paper's setting with real models\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL
    )
    assert len(re.findall(r"^cir ", section, re.MULTILINE)) == 4


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_that_is_named_is_one(option: str) -> None:
    commands = [parsed("cir multiround -b a -m b -s c").command, parsed("cir score a").command]
    known = {name for one in commands for each in one.params for name in (*each.opts, *each.secondary_opts)}
    assert option in known


@pytest.mark.slow
def test_the_first_dialogue_runs_as_it_is_written(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    (block,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for command in block.splitlines():
        done = cir(*shlex.split(command)[1:], folder=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "By round" in done.stdout
