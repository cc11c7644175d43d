"""The commands of the tutorial and of the API's page print what the pages show, on a server of their own."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from docs_shell import ROOT, Shell
from programs import run_program
from waiting import free_port

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def shown(page: str) -> list[tuple[str, str]]:
    """The commands of a page's console blocks, each with the output that is shown below it."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    pairs = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        parts = re.split(r"^\$ (.*)$", block, flags=re.MULTILINE)
        pairs += list(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))
    return pairs


def python_of_the_api() -> list[tuple[str, str]]:
    """The Python block of the API's page as a command, and what it prints once all else was run."""
    text = (ROOT / "docs" / "leaderboard_api.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    printed = "...Half the text 0.39\n...published"
    return [(shlex.join([sys.executable, "-c", source]), printed)]


@pytest.mark.slow
def test_the_tutorial_and_the_api_page_print_what_they_show(tmp_path: Path) -> None:
    port = str(free_port())
    text = (ROOT / "docs" / "first_use.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"^```python\n(# mine\.py\n.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "mine.py").write_text(source, encoding="utf-8")
    shell = Shell(tmp_path, CIR_LEADERBOARD_HOME=str(tmp_path / "home"))
    environment = {
        **shell.environment,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    wrong = []
    try:
        shell.run("cir datasets prepare shapes/val")
        shell.run(f"cir leaderboard serve --port {port}")
        guarded = str(free_port())
        shell.environment |= {
            "CIR_LEADERBOARD_HOME": str(tmp_path / "guarded"),
            "CIR_LEADERBOARD_ACCOUNTS": "tokens",
        }
        environment["CIR_LEADERBOARD_TOKEN"] = shell.run("cir leaderboard token create ada").strip()
        shell.run(f"cir leaderboard serve --port {guarded}")
        for command, expected in [*shown("first_use.md"), *shown("leaderboard_api.md"), *python_of_the_api()]:
            its_port = guarded if "Bearer" in command else port
            done = run_program(
                ["bash", "-c", command.replace("7860", its_port)], cwd=tmp_path, env=environment, code=None
            )
            printed = done.stdout.replace(its_port, "7860")
            if done.returncode or not doctest.OutputChecker().check_output(expected + "\n", printed, FLAGS):
                wrong.append(f"$ {command}\n--- shown\n{expected}\n--- printed\n{printed}{done.stderr}")
    finally:
        codes = shell.stop()
    assert wrong == []
    assert codes == [0, 0]
