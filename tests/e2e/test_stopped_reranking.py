"""`cir run --rerank sc4cir` that is killed: what a language server has answered is not asked again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from language_server import Fault, LanguageServer
from waiting import wait_for


@pytest.fixture(autouse=True)
def surroundings(plain_language: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-for-tests")


def answer(prompt: str) -> str:
    """T' for a request, else T''; both in the form that is asked for."""
    return (
        '{"instruction": "a small red star"}'
        if "asks for another one" in prompt
        else '{"instruction": "red"}'
    )


def command(out: Path, *more: str) -> list[str]:
    words = ["run", "--benchmark", "shapes/val", "--method", "image_only_pixels", "--out", str(out)]
    words += ["--rerank", "sc4cir", "--rerank-processes", "s1+s2", "--rerank-top", "3"]
    return [sys.executable, "-m", "leaderboard.cli", *words, "--language", "openai:tiny,concurrency=3", *more]


@pytest.mark.slow
def test_after_a_kill_only_what_was_open_is_asked_again(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    with LanguageServer(answer=answer, seconds=0.02) as server:
        surroundings = {**os.environ, "OPENAI_BASE_URL": server.url}
        process = forked.Process(
            command(out),
            env=surroundings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(lambda: sum(server.answered.values()) >= 40, process=process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert not out.exists()
        wait_for(lambda: len(server.requests) == sum(server.answered.values()))
        before = sum(server.answered.values())
        assert before < 300
        done = forked.run(command(out), env=surroundings, capture_output=True, text=True, check=True)
        assert sum(server.answered.values()) <= 300 + 3, "300 queries, and what three threads had open"
        assert "SC4CIR: 300 of 300 ranked anew; answered: 300 questions for T', 0 for T''" in done.stderr
        total = len(server.requests)
        again = tmp_path / "again.json"
        forked.run(command(again), env=surroundings, capture_output=True, check=True)
        assert len(server.requests) == total, "every answer is on disk"
        assert again.read_bytes() == out.read_bytes()


@pytest.mark.slow
def test_a_server_that_is_gone_from_the_start_ends_the_run_without_a_file(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    with LanguageServer(lambda *_: Fault("status", 401)) as server:
        surroundings = {**os.environ, "OPENAI_BASE_URL": server.url}
        done = forked.run(command(out), env=surroundings, capture_output=True, text=True, check=False)
        assert len(server.requests) <= 3, "after a key that is refused nobody is asked again"
    assert done.returncode == 1
    assert "not one of 300 queries could be ranked anew, so that nothing is written. Fix: " in done.stderr
    assert "the server refuses the key (401)" in done.stderr
    assert not out.exists()
