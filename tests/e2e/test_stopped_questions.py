"""Questions to a language server: Ctrl-C is heard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import forked
import pytest
from language_server import Fault, LanguageServer
from waiting import wait_for


@pytest.fixture(autouse=True)
def surroundings(plain_language: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-for-tests")


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
def test_ctrl_c_does_not_wait_for_a_server_that_asks_for_a_long_pause() -> None:
    with LanguageServer(lambda *_: Fault("status", 503, {"Retry-After": "500"})) as server:
        process = started(server)
        wait_for(lambda: len(server.requests) >= 1, process=process)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=300)
        assert process.returncode != 0
        assert "KeyboardInterrupt" in words
