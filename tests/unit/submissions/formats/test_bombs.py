"""Hostile files of at most 1 MB: every reader answers each, in a process of its own, in bounded memory."""

from __future__ import annotations

import sys
from pathlib import Path

import bombs
import pytest
from programs import run_program
from slowly import some

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="a process's own peak memory is read from /proc"
)


@pytest.mark.parametrize("name", [name for name in bombs.BOMBS if "overlay" in name])
def test_an_overlay_is_refused_in_bounded_memory(name: str, tmp_path: Path) -> None:
    bombs.check(name, tmp_path, "validate", "overlay")


QUICK = ("json-deep-lists", "gzip-empty-lists", "lines-broken", "trec-broken", "parquet-unknown-column")


@pytest.mark.parametrize("name", QUICK)
def test_a_bomb_of_each_container_is_refused_in_bounded_memory(name: str, tmp_path: Path) -> None:
    bombs.check(name, tmp_path, "validate", "judge")


HOSTILE = [name for name in bombs.BOMBS if not name.startswith("within-")]


@pytest.mark.parametrize("name", some(HOSTILE, HOSTILE[::4]))
def test_a_bomb_is_refused_in_bounded_memory_by_every_reader(name: str, tmp_path: Path) -> None:
    bombs.check(
        name,
        tmp_path,
        "judge",
        *bombs.turns(("validate", "score", "compare", "fuse", "overlay", "explain"), name, 1),
    )


@pytest.mark.slow
def test_the_command_line_answers_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "run.json.gz"
    path.write_bytes(bombs.BOMBS["gzip-nested-lists"].build())
    for verb in (["validate", str(path)], ["score", str(path)], ["convert", str(path), "--to", "trec"]):
        command = [sys.executable, "-m", "leaderboard.cli", *verb, "--benchmark", "shapes/val"]
        done = run_program(command, cwd=bombs.ROOT, preexec_fn=bombs.limited, code=1)
        said = " ".join((done.stdout + done.stderr).split())
        assert "too-large" in said
        assert "it holds more than 200,000 lists, objects and queries, which is the most for" in said
