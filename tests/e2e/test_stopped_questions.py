"""Questions to a language server: what was answered before a kill is not asked again, and Ctrl-C is heard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import forked
import pytest
from interruptible import wait_for
from language_server import Fault, LanguageServer

from submissions.language.server import ServerLanguage


@pytest.fixture(autouse=True)
def surroundings(plain_language: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-for-tests")


def judging(server: LanguageServer, texts: list[str]) -> list[str]:
    language = ServerLanguage("tiny", url=server.url)
    return language.judge("Say in capitals:\n{text}", [{"text": text} for text in texts])


SCRIPT = """
import sys
from submissions.language.server import ServerLanguage
language = ServerLanguage("tiny", concurrency=3)
texts = [{"text": f"text {number}"} for number in range(40)]
print(language.judge("Say in capitals:\\n{text}", texts))
"""


def started(server: LanguageServer) -> subprocess.Popen[str]:
    return forked.Process(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "OPENAI_BASE_URL": server.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_after_a_kill_only_what_was_open_is_asked_again(tmp_path: Path) -> None:
    with LanguageServer(seconds=0.05) as server:
        process = started(server)
        wait_for(lambda: sum(server.answered.values()) >= 15, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        wait_for(lambda: len(server.requests) == sum(server.answered.values()))
        answered = sum(server.answered.values())
        assert 15 <= answered < 40
        texts = [f"text {number}" for number in range(40)]
        assert judging(server, texts) == [text.upper() for text in texts]
        again = [prompt for prompt, times in server.answered.items() if times > 1]
        assert len(again) <= 3, "what three threads had open, and no more"
        assert len(server.answered) == 40
        total = len(server.requests)
        judging(server, texts)
        assert len(server.requests) == total


@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_a_server_that_asks_for_a_long_pause() -> None:
    with LanguageServer(lambda *_: Fault("status", 503, {"Retry-After": "500"})) as server:
        process = started(server)
        wait_for(lambda: len(server.requests) >= 1, process)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=300)
        assert process.returncode != 0
        assert "KeyboardInterrupt" in words
