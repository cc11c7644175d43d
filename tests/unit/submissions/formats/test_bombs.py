"""Hostile files of at most 1 MB: every reader answers each, in a process of its own, in bounded memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import bombs
import pytest

ROOT = Path(__file__).resolve().parents[4]
FIXTURES = ROOT / "tests" / "fixtures"
MEMORY_MIB = 512
SECONDS = 120
"""Processor time of one process, far above what all ways take together."""
ADDRESSES = 3 * 2**30

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="a process's own peak memory is read from /proc"
)


def limited() -> None:
    """A bomb that goes off ends its own process, not the machine."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))


def probed(path: Path, benchmark: str, *ways: str) -> dict[str, Any]:
    """What `bomb_probe` prints."""
    command = [sys.executable, str(FIXTURES / "bomb_probe.py"), str(path), benchmark, *ways]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=limited)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(name: str, folder: Path, *ways: str) -> None:
    bomb, path = bombs.BOMBS[name], folder / "run"
    content = bomb.build()
    assert len(content) <= bombs.LIMIT
    path.write_bytes(content)
    found = probed(path, bomb.benchmark, *ways)
    assert found["peak"] < MEMORY_MIB, found
    for way in ("validate", "judge"):
        if bomb.codes is not None and way in found["said"]:
            # Whatever else is wrong with it (queries that are missing) is found beside.
            said = set(found["said"][way].split(","))
            assert said >= set(bomb.codes.split(",")), way


@pytest.mark.parametrize("name", [name for name in bombs.BOMBS if "overlay" in name])
def test_an_overlay_is_refused_in_bounded_memory(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, "validate", "overlay")


QUICK = ("json-deep-lists", "gzip-empty-lists", "lines-broken", "trec-broken", "parquet-unknown-column")


@pytest.mark.parametrize("name", QUICK)
def test_a_bomb_of_each_container_is_refused_in_bounded_memory(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, "validate", "judge")


@pytest.mark.slow
@pytest.mark.parametrize("name", bombs.BOMBS)
def test_a_bomb_is_refused_in_bounded_memory_by_every_reader(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, "validate", "score", "judge", "compare", "fuse", "overlay")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in bombs.BOMBS if name.startswith("within-")])
def test_what_is_just_within_the_limits_is_converted_in_bounded_memory(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, *(f"convert to {to}" for to in ("native", "lines", "trec", "parquet")))
    check(name, tmp_path, *(f"convert under gzip to {to}" for to in ("native", "lines", "trec")))


@pytest.mark.slow
def test_the_command_line_answers_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "run.json.gz"
    path.write_bytes(bombs.BOMBS["gzip-nested-lists"].build())
    for verb in (["validate", str(path)], ["score", str(path)], ["convert", str(path), "--to", "trec"]):
        command = [sys.executable, "-m", "leaderboard.cli", *verb, "--benchmark", "shapes/val"]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=limited
        )
        assert done.returncode == 1, done.stderr
        said = " ".join((done.stdout + done.stderr).split())
        assert "too-large" in said
        assert "it holds more than 200,000 lists, objects and queries, which is the most for" in said
