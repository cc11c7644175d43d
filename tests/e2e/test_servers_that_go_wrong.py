"""Commands that ask a language server which goes wrong, or run on Ray: the same bytes come out."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import forked
import pytest
from fisd_runs import content, edits, shapes_captions
from language_server import Asked, Fault, LanguageServer
from PIL import Image
from retrieval_models import save_clip

import cir_datasets
from cir_datasets.common.paths import data_home
from examples.clips import write_clips

ROOT = Path(__file__).resolve().parents[2]
COLOURS = ("red", "blue", "green", "white", "black", "yellow", "purple", "orange")
SHAPES = ("star", "moon", "heart", "square", "circle", "cross", "diamond", "triangle")
CATEGORIES = ("attribute", "addition", "background")
FAULTS = (
    Fault("status", 429, {"Retry-After": "0"}),
    Fault("status", 500, {"Retry-After": "0"}),
    Fault("empty"),
    Fault("cut"),
    Fault("not_json"),
    Fault("nonsense"),
)


def words_of(asked: Asked) -> str:
    """Words that depend on the question and its pictures, as a model's do."""
    drawn = hashlib.sha256("".join((asked.prompt, *asked.images)).encode()).digest()
    one, other = (f"a {COLOURS[drawn[at] % 8]} {SHAPES[drawn[at + 1] % 8]}" for at in (0, 2))
    return f"{one} and {other}"


def instruction(asked: Asked) -> str:
    return json.dumps({"instruction": words_of(asked)})


def merged(asked: Asked) -> str:
    return instruction(asked) if len(asked.images) == 2 else words_of(asked)


def chosen(asked: Asked) -> str:
    """A choice, or a caption of what is the matter with the pictures."""
    if '"choice"' in asked.prompt:
        return json.dumps({"choice": min(2, len(asked.images))})
    words = words_of(asked)
    return json.dumps({"instruction": words, "category": CATEGORIES[len(words) % 3]})


def noise(folder: Path) -> None:
    """A tiny encoder, and pictures of noise for real annotations."""
    save_clip(folder / "clip")
    (folder / "pictures").mkdir()
    for image in cir_datasets.load("cirr/val").gallery or ():
        drawn = hashlib.sha256(image.encode()).digest()
        Image.frombytes("RGB", (2, 2), drawn[:12]).resize((16, 16)).save(folder / f"pictures/{image}.png")


@dataclass(frozen=True)
class User:
    """A command that asks.

    Args:
        words: of the command; INPUT in these is the folder of what `prepare` made.
        look: answers of the server.
        prepare: makes what is read.
        faults: of the server; what takes any words as an answer takes nonsense, too.
        out: what it writes.
    """

    words: str
    look: Callable[[Asked], str]
    prepare: Callable[[Path], object] = lambda folder: None
    faults: tuple[Fault, ...] = FAULTS
    out: str = "mine"


USERS = {
    "circled": User("make circled --benchmark shapes/val --limit 8", merged, faults=FAULTS[:-1]),
    "fisd": User(
        "make fisd --captions INPUT/captions.txt --per-aspect 8 --spare 2 --chunk 2 "
        "--aspect background --aspect change",
        edits,
        shapes_captions,
    ),
    "zerosight": User(
        "make zerosight --videos INPUT --name mine --thresholds shapes --after none",
        chosen,
        lambda folder: write_clips(folder, 2, first=3),
    ),
    "dialogue": User(
        "multiround --benchmark shapes/val --method random --limit 12 --way pictures --start random "
        "--k 1 --max-rounds 4",
        instruction,
        out="mine.jsonl",
    ),
}


class Runs:
    """Runs of one user in folders of their own, and their server."""

    def __init__(self, user: User, folder: Path) -> None:
        self.user, self.folder = user, folder
        (folder / "input").mkdir()
        user.prepare(folder / "input")
        self.server = LanguageServer(look=user.look)

    def run(self, name: str, cache: str, *more: str, code: int = 0) -> str:
        """What the command says on stderr."""
        (self.folder / name).mkdir(exist_ok=True)
        words = self.user.words.replace("INPUT", str(self.folder / "input")).split()
        asks = "--simulator" if words[0] == "multiround" else "--language"
        done = forked.run(
            [
                *(sys.executable, "-m", "leaderboard.cli", *words, "--out", self.user.out),
                *(asks, "openai:tiny,timeout=20", *more),
            ],
            cwd=self.folder / name,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "OPENAI_BASE_URL": self.server.url,
                "OPENAI_API_KEY": "sk-made-up-for-tests",
                "NO_PROXY": "127.0.0.1",
                "CIR_CACHE_HOME": str(self.folder / cache),
                "CIR_PROMPTS": "",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=1200,
        )
        assert done.returncode == code, done.stderr
        return done.stderr

    def bytes_of(self, name: str) -> dict[str, bytes]:
        found = content(self.folder / name)
        assert found
        return {path: whole for path, whole in found.items() if not Path(path).name.startswith(".")}


@pytest.fixture
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Runs]:
    made = Runs(USERS[request.param], tmp_path)
    with made.server:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("runs", USERS, indirect=True)
def test_faults_change_no_byte_and_what_is_in_the_cache_is_not_asked_again(runs: Runs) -> None:
    server, faults = runs.server, runs.user.faults
    runs.run("whole", "cache")
    asked = len(server.requests)
    assert asked == len({(one.prompt, one.images) for one in server.requests}), "no question is asked twice"
    server.one_fault_a_question = True
    server.fault = lambda prompt, times: (
        faults[(len(prompt) + times) % len(faults)] if (len(prompt) + times) % 2 else None
    )
    runs.run("faults", "cache of faults")
    total = len(server.requests)
    assert total > 2 * asked
    assert "0 answered" in runs.run("again", "cache of faults")
    assert len(server.requests) == total
    assert runs.bytes_of("faults") == runs.bytes_of("whole") == runs.bytes_of("again")


@pytest.mark.slow
@pytest.mark.parametrize("runs", ["zerosight", "dialogue"], indirect=True)
def test_a_server_that_goes_away_stops_the_run_and_the_same_call_goes_on(runs: Runs) -> None:
    server = runs.server
    runs.run("whole", "cache")
    least = len(server.requests) + 15
    server.fault = lambda prompt, times: Fault("status", 401) if len(server.requests) > least else None
    words = runs.run("stopped", "cache of stopped", code=1)
    assert "the server refuses the key (401)" in words
    assert "answered (" in words, "what it has cost until then is said"
    server.fault = lambda prompt, times: None
    runs.run("stopped", "cache of stopped")
    assert runs.bytes_of("stopped") == runs.bytes_of("whole")


@pytest.mark.slow
@pytest.mark.parametrize("runs", ["circled", "fisd", "zerosight"], indirect=True)
def test_a_run_on_ray_has_the_same_bytes_and_asks_as_much(runs: Runs) -> None:
    pytest.importorskip("ray", reason="needs the extra `distributed`")
    runs.run("here", "cache")
    here = len(runs.server.requests)
    runs.run("there", "other", "--engine", "ray")
    assert len(runs.server.requests) == 2 * here
    assert runs.bytes_of("there") == runs.bytes_of("here")


@pytest.mark.slow
def test_real_annotations_of_cirr_with_random_features_complete_200_queries(tmp_path: Path) -> None:
    home = data_home()
    if home is None or not (home / "cirr").is_dir():
        pytest.skip("needs CIRR's own files below CIR_DATA_HOME")
    words = (
        "make circled --benchmark cirr/val --limit 200 --images INPUT/pictures --encoder INPUT/clip "
        "--diversity-encoder INPUT/clip --tau 1 --workers 0"
    )
    runs = Runs(User(words, merged, noise), tmp_path)
    with runs.server:
        runs.run("whole", "cache")
    filters = runs.bytes_of("whole")["mine/34-filters.jsonl"]
    verdicts = [json.loads(line) for line in filters.splitlines()]
    assert len(verdicts) == 200
    assert not [row for row in verdicts if row["filter"] == "failed"]
    assert max(row["turns"] for row in verdicts) == 6
    assert all(row["why"] for row in verdicts if not row["kept"])
