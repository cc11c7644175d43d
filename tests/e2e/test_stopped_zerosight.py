"""`cir make zerosight` on Ray, and with servers that go wrong: the same bytes come out."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from language_server import Asked, Fault, LanguageServer

from examples.clips import write_clips

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from leaderboard.cli import main; main()"
FAULTS = (
    Fault("status", 429, {"Retry-After": "0"}),
    Fault("status", 500, {"Retry-After": "0"}),
    Fault("nonsense"),
    Fault("empty"),
    Fault("cut"),
    Fault("not_json"),
)
SAID = (("with a red star", "attribute"), ("with a red star, too", "addition"), ("in a wood", "background"))


def says(asked: Asked) -> str:
    """A choice, or words that depend on the pictures."""
    if '"choice"' in asked.prompt:
        return json.dumps({"choice": min(2, len(asked.images))})
    drawn = hashlib.sha256("".join(asked.images).encode() or asked.prompt.encode()).digest()[0]
    caption, category = SAID[drawn % len(SAID)]
    return json.dumps({"instruction": caption, "category": category})


def started(server: LanguageServer, clips: Path, out: Path, cache: Path) -> subprocess.Popen[str]:
    command = [
        *("make", "zerosight", "--videos", str(clips), "--out", str(out), "--name", "mine"),
        *("--thresholds", "shapes", "--after", "none", "--language", "openai:tiny,timeout=20"),
    ]
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": server.url,
        "OPENAI_API_KEY": "sk-made-up-for-tests",
        "NO_PROXY": "127.0.0.1",
        "CIR_CACHE_HOME": str(cache),
        "CIR_PROMPTS": "",
    }
    return forked.Process(
        [sys.executable, "-c", SCRIPT, *command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str], code: int = 0) -> str:
    _, words = process.communicate(timeout=240)
    assert process.returncode == code, words
    return words


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clips")
    write_clips(folder, 2, first=3)
    return folder


def command(clips: Path, out: Path, *more: str) -> list[str]:
    return [
        *("make", "zerosight", "--videos", str(clips), "--out", str(out), "--name", "mine"),
        *("--thresholds", "shapes", "--after", "none", *more),
    ]


def run(script: str, words: list[str]) -> subprocess.Popen[str]:
    return forked.Process(
        [sys.executable, "-c", script, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_the_command_on_ray_leaves_the_bytes_of_one_here(tmp_path: Path, clips: Path) -> None:
    pytest.importorskip("ray", reason="needs the extra `distributed`")
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    for engine in ("local", "ray"):
        ended(run(SCRIPT, command(clips, tmp_path / engine, "--engine", engine)))
    assert bytes_of(tmp_path / "ray") == bytes_of(tmp_path / "local")


@pytest.mark.slow
def test_faults_change_no_row_and_nothing_is_asked_twice(tmp_path: Path, clips: Path) -> None:
    with LanguageServer(look=says) as server:
        ended(started(server, clips, tmp_path / "whole", tmp_path / "cache"))
        asked = sum(server.answered.values())
        server.one_fault_a_question = True
        server.fault = lambda prompt, times: FAULTS[times // 3 % len(FAULTS)] if times % 3 == 0 else None
        before = len(server.requests)
        ended(started(server, clips, tmp_path / "faults", tmp_path / "cache of faults"))
        assert len(server.requests) - before > asked
        total = len(server.requests)
        words = ended(started(server, clips, tmp_path / "again", tmp_path / "cache of faults"))
        assert len(server.requests) == total
    assert "0 answered" in words
    assert bytes_of(tmp_path / "faults") == bytes_of(tmp_path / "whole") == bytes_of(tmp_path / "again")


@pytest.mark.slow
def test_a_server_that_goes_away_stops_the_run_and_the_same_call_goes_on(tmp_path: Path, clips: Path) -> None:
    with LanguageServer(look=says) as server:
        ended(started(server, clips, tmp_path / "whole", tmp_path / "cache"))
        least = len(server.requests) + 20
        server.fault = lambda prompt, times: Fault("status", 401) if len(server.requests) > least else None
        words = ended(started(server, clips, tmp_path / "stopped", tmp_path / "cache of stopped"), code=1)
        assert "the server refuses the key (401)" in words
        server.fault = lambda prompt, times: None
        ended(started(server, clips, tmp_path / "stopped", tmp_path / "cache of stopped"))
    assert bytes_of(tmp_path / "stopped") == bytes_of(tmp_path / "whole")
