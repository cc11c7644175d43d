"""What `cir` says when its own output cannot be written, and when it has a defect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FULL = Path("/dev/full")

DEFECT = """
import sys
import cir_metrics.commands
from leaderboard import cli
def broken(app):
    @app.command("broken")
    def command() -> None:
        raise RuntimeError("a bug")
cir_metrics.commands.register = broken
sys.argv = ["cir", "broken"]
cli.main()
"""


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    "arguments", [["metrics", "list"], ["metrics", "list", "--json"], ["datasets", "list"]]
)
def test_a_full_disk_is_a_clear_error(arguments: list[str]) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "leaderboard.cli", *arguments],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("cir: cannot write the output: No space left on device. Fix: ")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_defect_exits_with_1_and_says_how_to_report_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEFECT], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "cir: a defect of this program: RuntimeError: a bug. "
        "Fix: run it again as `cir --debug ...` and report what it prints.\n"
    )
