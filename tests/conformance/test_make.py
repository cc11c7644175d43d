"""What `make` looks at before anything is installed, and what it says while it installs."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import run_program

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")

PYTHON = """\
#!/bin/sh
case "$*" in
--version) echo "Python VERSION" ;;
"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
*FAILS*) echo "Collecting one" && echo "no room on the disk" >&2 && exit 7 ;;
*) echo "Collecting one>=2" && echo "Collecting two" && echo "Installing collected packages: one, two" ;;
esac
"""
"""A Python of some version, with a venv and a pip that install nothing."""


def make(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "GOAL")}
    return run_program(["make", *words], cwd=ROOT, env=environment, code=None)


def python(folder: Path, version: str) -> Path:
    path = folder / f"python{version.rpartition('.')[0]}"
    path.write_text(PYTHON.replace("VERSION", version), encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("version", ["2.7.18", "3.1.5", "3.9.18", "3.10.14"])
@pytest.mark.parametrize("goal", ["run", "lint"])
def test_an_old_python_is_refused_before_anything_is_made(goal: str, version: str, tmp_path: Path) -> None:
    old = python(tmp_path, version)
    done = make(goal, f"PYTHON={old}", f"RUN_VENV={tmp_path / 'run'}", f"TEST_VENV={tmp_path / 'test'}")
    assert done.returncode != 0
    assert f"{old} is: Python {version}\n" in done.stderr
    assert re.search(rf"^Fix: .*make {goal} PYTHON=\S*python3\.1\d$", done.stderr, re.MULTILINE)
    assert list(tmp_path.iterdir()) == [old]


def test_a_python_that_there_is_not_is_refused(tmp_path: Path) -> None:
    done = make("run", "PYTHON=python3.0", f"RUN_VENV={tmp_path / 'run'}")
    assert done.returncode != 0
    assert "Fix: " in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def taken() -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield str(listener.getsockname()[1])


def test_a_taken_port_is_refused_before_anything_is_made(taken: str, tmp_path: Path) -> None:
    done = make("run", f"PORT={taken}", f"PYTHON={shutil.which('python3')}", f"RUN_VENV={tmp_path / 'run'}")
    assert done.returncode != 0
    assert f"127.0.0.1:{taken}" in done.stderr
    (free,) = re.findall(r"make run PORT=(\d+)", done.stderr)
    assert free != taken
    assert list(tmp_path.iterdir()) == []
    assert make("port", f"PORT={taken}", "SERVE=0", f"RUN_VENV={tmp_path / 'run'}").returncode == 0


@pytest.mark.parametrize("port", ["http", "65536", "-1"])
def test_a_port_that_is_none_is_refused(port: str, tmp_path: Path) -> None:
    done = make("port", f"PORT={port}", f"RUN_VENV={tmp_path / 'run'}")
    assert done.returncode != 0
    assert f"PORT={port} " in done.stderr
    assert re.search(r"Fix: make run PORT=\d+$", done.stderr, re.MULTILINE)


def environment(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run_program(
        [ROOT / "environment.sh", folder / "venv", "leaderboard", *options],
        cwd=folder,
        env={**os.environ, "PYTHON": str(python(folder, "3.12.1")), "GOAL": "run"},
        code=None,
    )


def test_installing_says_how_far_it_is(tmp_path: Path) -> None:
    done = environment(tmp_path)
    assert done.returncode == 0, done.stderr
    head, *stages = done.stdout.splitlines()
    assert "Python 3.12.1" in head
    assert [line for line in stages if "2 packages" in line] == ["  installing 2 packages"] * 2
    assert (tmp_path / "venv" / "pip.log").read_text("utf-8").count("Collecting two") == 2


def test_what_pip_says_is_shown_where_it_fails(tmp_path: Path) -> None:
    done = environment(tmp_path, "FAILS")
    assert done.returncode == 1
    assert "no room on the disk" in done.stderr
    assert re.search(r"^Fix: .* make run ", done.stderr, re.MULTILINE)
