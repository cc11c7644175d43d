"""Dialogues with servers that go wrong: what comes out is the same, byte for byte."""

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

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from leaderboard.cli import main; main()"
COLOURS = ("red", "blue", "green", "white", "black", "yellow")
SHAPES = ("star", "moon", "heart", "square", "circle", "cross")
ROUNDS = 4
FAULTS = (
    Fault("status", 429, {"Retry-After": "0"}),
    Fault("status", 500, {"Retry-After": "0"}),
    Fault("nonsense"),
    Fault("empty"),
    Fault("cut"),
    Fault("not_json"),
)


def says(asked: Asked) -> str:
    """Words that depend on both pictures, as a model's do."""
    drawn = hashlib.sha256("".join(asked.images).encode()).digest()
    one, other = (f"a {COLOURS[drawn[at] % 6]} {SHAPES[drawn[at + 1] % 6]}" for at in (0, 2))
    return json.dumps({"instruction": f"{one} and {other}"})


def started(server: LanguageServer, folder: Path, cache: str, *more: str) -> subprocess.Popen[str]:
    """A dialogue whose method needs no pictures, with a server as user that looks at two of them."""
    folder.mkdir(exist_ok=True)
    command = [
        *("multiround", "--benchmark", "shapes/val", "--method", "random", "--limit", "12"),
        *("--simulator", "openai:tiny,timeout=20", "--way", "pictures", "--start", "random"),
        *("--k", "1", "--max-rounds", str(ROUNDS), "--out", "dialogue.jsonl", *more),
    ]
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": server.url,
        "OPENAI_API_KEY": "sk-made-up-for-tests",
        "NO_PROXY": "127.0.0.1",
        "CIR_CACHE_HOME": str(folder.parent / cache),
        "CIR_PROMPTS": "",
    }
    return forked.Process(
        [sys.executable, "-c", SCRIPT, *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str], code: int = 0) -> str:
    _, words = process.communicate(timeout=240)
    assert process.returncode == code, words
    return words


@pytest.mark.slow
def test_faults_change_no_byte_and_what_is_in_the_cache_is_not_asked_again(tmp_path: Path) -> None:
    with LanguageServer(look=says) as server:
        ended(started(server, tmp_path / "whole", "cache"))
        asked = len(server.requests)
        server.one_fault_a_question = True
        server.fault = lambda prompt, times: FAULTS[times // 3 % len(FAULTS)] if times % 3 == 0 else None
        words = ended(started(server, tmp_path / "faults", "cache of faults"))
        assert len(server.requests) > 2 * asked
        total = len(server.requests)
        same = ended(started(server, tmp_path / "again", "cache of faults"))
        assert len(server.requests) == total
    whole, faults, again = (
        (tmp_path / name / "dialogue.jsonl").read_bytes() for name in ("whole", "faults", "again")
    )
    assert whole == faults == again
    assert f"openai:tiny: {asked} answered (" in words
    assert f"0 answered (0 requests, 0 + 0 tokens), {asked} from the cache" in same


@pytest.mark.slow
def test_a_server_that_goes_away_stops_the_run_and_the_same_call_goes_on(tmp_path: Path) -> None:
    with LanguageServer(look=says) as server:
        ended(started(server, tmp_path / "whole", "cache"))
        least = len(server.requests) + 15
        away = Fault("status", 401)
        server.fault = lambda prompt, times: away if len(server.requests) > least else None
        words = ended(started(server, tmp_path / "stopped", "cache of stopped"), code=1)
        assert "the server refuses the key (401)" in words
        assert "the same call goes on" in words
        assert "answered (" in words, "what it has cost until then is said"
        assert not (tmp_path / "stopped/dialogue.jsonl").exists()
        server.fault = lambda prompt, times: None
        ended(started(server, tmp_path / "stopped", "cache of stopped"))
    whole, stopped = ((tmp_path / name / "dialogue.jsonl").read_bytes() for name in ("whole", "stopped"))
    assert whole == stopped
