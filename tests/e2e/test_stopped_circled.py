"""`cir make circled` with a server as its model: killed, with faults, and on real annotations."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from interruptible import wait_for
from language_server import Asked, Fault, LanguageServer
from PIL import Image
from retrieval_models import save_clip

import cir_datasets
from cir_datasets.common.paths import data_home

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from leaderboard.cli import main; main()"
COLOURS = ("red", "blue", "green", "white", "black", "yellow", "purple", "orange")
SHAPES = ("star", "moon", "heart", "square", "circle", "cross", "diamond", "triangle")
FAULTS = (
    Fault("status", 429, {"Retry-After": "0"}),
    Fault("status", 500, {"Retry-After": "0"}),
    Fault("empty"),
    Fault("cut"),
    Fault("not_json"),
)
STAGES = ("06-words-1.jsonl", "34-filters.jsonl")


def says(asked: Asked) -> str:
    """Words that depend on the question and its pictures, as a model's do."""
    drawn = hashlib.sha256("".join((asked.prompt, *asked.images)).encode()).digest()
    one, other = (f"a {COLOURS[drawn[at] % 8]} {SHAPES[drawn[at + 1] % 8]}" for at in (0, 2))
    words = f"{one} and {other}"
    return json.dumps({"instruction": words}) if len(asked.images) == 2 else words


def started(
    server: LanguageServer | None, folder: Path, cache: Path, *more: str, script: str = SCRIPT
) -> subprocess.Popen[str]:
    language = "oracle" if server is None else "openai:tiny,timeout=20"
    command = ["make", "circled", "--language", language, "--out", str(folder), *more]
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": "" if server is None else server.url,
        "OPENAI_API_KEY": "sk-made-up-for-tests",
        "NO_PROXY": "127.0.0.1",
        "CIR_CACHE_HOME": str(cache),
        "CIR_PROMPTS": "",
    }
    return forked.Process(
        [sys.executable, "-c", script, *command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> str:
    _, words = process.communicate(timeout=1200)
    assert process.returncode == 0, words
    return words


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.mark.slow
def test_a_run_that_is_killed_or_meets_faults_ends_with_the_same_bytes_and_asks_nothing_twice(
    tmp_path: Path,
) -> None:
    shapes = ("--benchmark", "shapes/val", "--limit", "10")
    vectors = tmp_path / "cache"
    with LanguageServer(look=says) as server:
        ended(started(server, tmp_path / "whole", vectors, *shapes))
        asked = len(server.requests)
        once = {(one.prompt, one.images) for one in server.requests}
        assert asked == len(once), "no question is asked twice"
        ended(started(server, tmp_path / "again", vectors, *shapes))
        assert len(server.requests) == asked
        # The vectors of the gallery are kept, the answers are not.
        for path in (vectors / "language").rglob("*"):
            if path.is_file():
                path.unlink()
        server.fault = lambda prompt, times: FAULTS[len(prompt) % len(FAULTS)] if times == 1 else None
        server.seconds = 0.02
        for stage in STAGES:
            process = started(server, tmp_path / "killed", vectors, *shapes)
            wait_for(lambda: (tmp_path / "killed" / stage).exists(), process)  # noqa: B023
            process.send_signal(signal.SIGKILL)
            process.communicate()
        ended(started(server, tmp_path / "killed", vectors, *shapes))
    whole = contents(tmp_path / "whole")
    assert contents(tmp_path / "again") == whole
    assert contents(tmp_path / "killed") == whole


@pytest.mark.slow
def test_a_run_on_ray_has_the_same_bytes_and_asks_as_much(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the extra `distributed`")
    shapes = ("--benchmark", "shapes/val", "--limit", "8")
    with LanguageServer(look=says) as server:
        ended(started(server, tmp_path / "here", tmp_path / "cache", *shapes))
        here = len(server.requests)
        assert here
        there = ("--engine", "ray")
        ended(started(server, tmp_path / "there", tmp_path / "other", *shapes, *there))
        assert len(server.requests) == 2 * here
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@pytest.mark.slow
def test_real_annotations_of_cirr_with_random_features_complete_200_queries(tmp_path: Path) -> None:
    home = data_home()
    if home is None or not (home / "cirr").is_dir():
        pytest.skip("needs CIRR's own files below CIR_DATA_HOME")
    benchmark = cir_datasets.load("cirr/val")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for image in benchmark.gallery or ():
        drawn = hashlib.sha256(image.encode()).digest()
        Image.frombytes("RGB", (2, 2), drawn[:12]).resize((16, 16)).save(pictures / f"{image}.png")
    encoder = str(save_clip(tmp_path / "clip"))
    with LanguageServer(look=says) as server:
        ended(
            started(
                *(server, tmp_path / "made", tmp_path / "cache"),
                *("--benchmark", "cirr/val", "--limit", "200", "--images", str(pictures)),
                *("--encoder", encoder, "--diversity-encoder", encoder, "--tau", "1", "--workers", "0"),
            )
        )
    verdicts = [json.loads(line) for line in (tmp_path / "made/34-filters.jsonl").read_text().splitlines()]
    assert len(verdicts) == 200
    assert not [row for row in verdicts if row["filter"] == "failed"]
    assert max(row["turns"] for row in verdicts) == 6
    assert all(row["why"] for row in verdicts if not row["kept"])
