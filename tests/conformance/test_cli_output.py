"""What `cir` prints: nothing that a terminal obeys, no password, and words when it is broken or not heard."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import datasets_publishers as made
import pytest
from cir_here import cir, in_a_process
from programs import run_program

from cir_datasets.common.terminal import visible

ROOT = Path(__file__).resolve().parents[2]
FULL = Path("/dev/full")

DEFECT = """
import sys
import submissions.commands.validate as validate
from leaderboard import cli
def broken() -> None:
    raise RuntimeError("a bug")
validate.validate_command = broken
sys.argv = ["cir", "validate"]
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
    done = run_program([sys.executable, "-c", DEFECT], cwd=ROOT, code=None)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "cir: a defect of this program: RuntimeError: a bug. "
        "Fix: run it again as `cir --debug ...` and report what it prints.\n"
    )


ESC, BIDI, HALF = "\x1b[31m\x1b]0;owned\x07", "\u202egnp.\u2066", "\udc9b"
HOSTILE = f"a{ESC}b{BIDI}c\x9b2J\x7fd\re"
WRITTEN_OUT = r"a\x1b[31m\x1b]0;owned\x07b\u202egnp.\u2066c\u009b2J\u007fd\x0de"


def obeyed(text: str) -> list[str]:
    """What a terminal would obey in a text."""
    directions = "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    return [
        one
        for one in text
        if (one not in "\n\t" and (one < " " or "\x7f" <= one < "\xa0")) or one in directions
    ]


def test_what_a_terminal_obeys_is_written_out() -> None:
    assert visible(HOSTILE) == WRITTEN_OUT
    assert visible(f"half {HALF}, tag \U000e0041, line\r\n\ttab") == (
        "half \\udc9b, tag \\udb40\\udc41, line\r\n\ttab"
    )
    harmless = "".join(map(chr, (0x421, 0x5E9, 0x645, 0x4E2D, 0x1F468, 0x200D, 0x1F469)))
    assert visible(harmless) == harmless
    for ascii_only in (False, True):
        text = json.dumps({HOSTILE: [HOSTILE, "\U000e0041"]}, ensure_ascii=ascii_only, indent=1)
        assert json.loads(visible(text)) == {HOSTILE: [HOSTILE, "\U000e0041"]}
        assert obeyed(visible(text)) == []


@pytest.mark.parametrize("command", ["score", "validate", "compare"])
def test_names_of_others_reach_no_terminal_as_they_are(command: str, tmp_path: Path) -> None:
    """Of a file, whose name comes with an archive, say."""
    name = f"x{ESC}{BIDI}.json.gz"
    entry = ROOT / "submissions/entries/text_only-pixels.shapes-val.json.gz"
    (tmp_path / name).write_bytes(entry.read_bytes())
    (tmp_path / "broken.json").write_text(json.dumps({"rankings": {HOSTILE: [HOSTILE]}, HOSTILE: 1}))
    files = [name, str(entry)] if command == "compare" else [name]
    for given in (files, ["broken.json"]):
        for options in ([], ["--json"]):
            done = cir(command, *given, *options, folder=tmp_path)
            assert obeyed(done.stdout) == obeyed(done.stderr) == []
            if options and done.stdout:
                assert isinstance(json.loads(done.stdout), dict)
            if given is files:
                assert done.returncode == 0, done.stderr


def test_errors_and_tracebacks_are_written_out_too(tmp_path: Path) -> None:
    missing = f"no{ESC}{BIDI}.json"
    for options in ([], ["--debug"]):
        done = in_a_process(*options, "score", missing, folder=tmp_path)
        assert done.returncode in (1, 2)
        assert obeyed(done.stderr) == []
        assert r"no\x1b[31m" in done.stderr
        assert ("Traceback" in done.stderr) == bool(options)


def test_names_of_pictures_reach_no_terminal_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / f"p{ESC}.png").write_bytes(b"x")
    (folder / os.fsdecode(b"half\x9b.png")).touch()
    made.write_cirr(tmp_path / "home", "val")
    alone = {"CIR_DATA_HOME": str(tmp_path / "home"), "CIR_CACHE_HOME": str(tmp_path / "cache")}
    command = ("datasets", "images", "cirr/val", "--root", str(folder))
    done = cir(*command, CIR_VERIFICATION_MODE="no_checks", **alone)
    assert r"p\x1b[31m" in done.stdout
    assert r"half\udc9b.png" in done.stdout
    assert obeyed(done.stdout) == obeyed(done.stderr) == []


def test_a_traceback_shows_no_password() -> None:
    """Of a library's error too, behind ours."""
    code = DEFECT.replace('"a bug"', '"no answer from http://me:hunter2@host/?api_key=hunter2"')
    for debug in ("", "1"):
        done = run_program(
            [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "CIR_DEBUG": debug}, code=None
        )
        assert "no answer from http://***@host/?api_key=***" in done.stderr
        assert "hunter2@" not in done.stderr.replace('"no answer from http://me:hunter2@', "")


def test_one_place_writes_to_the_terminal() -> None:
    """Everything else calls `echo`, so that nothing gets around it; one process writes to its parent."""
    allowed = {"cir_datasets/common/terminal.py", "cir_datasets/common/parquet_child.py"}
    found = set()
    for folder in ("cir_metrics", "cir_datasets", "submissions", "leaderboard"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                    *("print", "typer.echo", "typer.secho", "click.echo", "rich.print"),
                    *("sys.stdout.write", "sys.stderr.write"),
                ):
                    found.add(str(path.relative_to(ROOT)))
    assert found == allowed
