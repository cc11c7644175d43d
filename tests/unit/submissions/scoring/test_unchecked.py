"""A benchmark that was prepared without checks, then scored: the message names a way out that works there."""

from __future__ import annotations

import json
import os
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import datasets_publishers as made
import pytest
from cir_here import invoked as cir
from leaderboard_world import serving
from typer.main import get_command

import cir_datasets
import submissions
from cir_datasets.errors import CountError, SourceError
from cir_metrics.errors import CirError
from leaderboard.cli import build

pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")

COMMANDS = {
    "score": ["score", "run.json"],
    "validate": ["validate", "run.json"],
    "run": ["run", "--benchmark", "circo/val", "--method", "random", "--out", "again.json"],
    "compare": ["compare", "run.json", "run.json"],
    "fuse": ["fuse", "run.json", "run.json", "--out", "fused.json"],
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A publisher's folder with two queries where the card says 220, a rank file for it, and no network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    monkeypatch.delenv("CIR_VERIFICATION_MODE", raising=False)
    made.write_circo(tmp_path / "home", "val")
    benchmark = cir_datasets.load("circo/val", data_dir=tmp_path / "home", verification_mode="no_checks")
    submissions.write(submissions.make_rank_file(benchmark, "random"), tmp_path / "run.json")
    return tmp_path / "home"


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("sources", ["there", "gone"])
def test_both_ways_out_of_the_message_work_in_the_command_that_prints_it(
    home: Path, arguments: list[str], sources: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sources == "there":
        monkeypatch.setenv("CIR_DATA_HOME", str(home))
    refused = cir(*arguments)
    assert refused.exit_code != 0
    said = f"{refused.output} {refused.exception}"
    found = re.search(r"set (CIR_VERIFICATION_MODE)=(no_checks) \(cir has (--no-checks)", said)
    assert found is not None, said
    variable, mode, option = found.groups()
    cir(option, *arguments, code=0)
    assert variable not in os.environ, "it lasts for one command"
    monkeypatch.setenv(variable, mode)
    assert cir(*arguments).exit_code == 0
    monkeypatch.setenv(variable, "all_checks")
    assert cir(option, *arguments).exit_code == 0
    assert os.environ[variable] == "all_checks"


def test_scores_say_that_the_counts_were_not_compared(home: Path) -> None:
    assert home.is_dir()
    scored = json.loads(cir("--no-checks", "score", "run.json", "--json").stdout)
    assert all("skipped:counts" in each["text"] for each in scored["signatures"].values())


def test_a_board_takes_it_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", str(home))
    add = ["leaderboard", "add", "--home", "boards", "run.json"]
    refused = cir(*add, code=1)
    # The reason itself, and nothing was received: a second try is a first one.
    assert "2 queries, but the card says 220" in f"{refused.output} {refused.exception}"
    assert "send it again later" not in refused.output
    assert cir(*add, "--no-checks", "--home", "others").stdout.startswith("circo/val\tRandom\t")


def test_what_python_is_told_works_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        SourceError, match=r"circo/val was prepared here without its checks.*Fix: to use what"
    ):
        submissions.score("run.json")
    monkeypatch.setenv("CIR_DATA_HOME", str(home))
    with pytest.raises(CountError, match=r"2 queries, but the card says 220.*cir_datasets\.load and"):
        submissions.score("run.json")
    benchmark = cir_datasets.load("circo/val", verification_mode="no_checks")
    assert submissions.score("run.json", benchmark).complete


def test_a_missing_file_is_fixed_by_a_command_that_exists(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the message names is another command, after which it works."""
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "another"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    with pytest.raises(CirError) as caught:
        submissions.score("run.json")
    found = re.search(r"Fix: `cir (.+?)`", str(caught.value))
    assert found is not None, caught.value
    words = found[1].replace("FOLDER", str(home)).split()
    assert cir(*words, "--no-hub-cache").exit_code == 0
    assert cir("score", "run.json").exit_code == 0


CIRCO = ("--benchmark", "circo/val")
OUT = ("--out", "made")
CALLS: dict[str, tuple[str, ...]] = {
    "browse": ("run.json",),
    "challenge new": ("mine", "--from", "circo/val", "--ground-truth", "truth.jsonl", "--home", "boards"),
    "compare": ("run.json", "run.json"),
    "convert": ("run.json", "--to", "circo-server"),
    "repair": ("run.json", "--out", "repaired.json"),
    "datasets browse": ("circo/val",),
    "datasets export": ("circo/val", *OUT),
    "datasets hash": ("circo/val", "--images", "."),
    "datasets images": ("circo/val", "--images", "."),
    "datasets overlay add": ("short.json",),
    "datasets prepare": ("circo/val", "--no-hub-cache"),
    "datasets publish": ("circo/val", "--to", "made"),
    "datasets qrels": ("circo/val", *OUT),
    "datasets stats": ("circo/val", "--no-tags"),
    "embed": (*CIRCO, "--encoder", "shapes", "--images", "."),
    "explain": ("run.json",),
    "fuse": ("run.json", "run.json", *OUT),
    "leaderboard add": ("run.json", "--home", "boards"),
    "leaderboard rescore": ("circo/val", "--home", "boards"),
    "make circled": (*CIRCO, *OUT, "--language", "oracle"),
    "make cirr": (*CIRCO, *OUT, "--images", "."),
    "make cirr-import": ("made", "answers.json", *CIRCO, "--images", "."),
    "make comparison": (*CIRCO, *OUT),
    "make judge": ("circo/val", "--judge", "oracle", *OUT),
    "make overlay": ("circo/val", "--pattern", "a", "--out", "made.json"),
    "make review": ("noise", "circo/val", "--images", ".", "--out", "asked"),
    "multiround": (*CIRCO, "--method", "random", "--simulator", "oracle", "--out", "made.jsonl"),
    "play": (*CIRCO, "--method", "random", "--out", "made.jsonl"),
    "plot": ("run.json", "--out", "figures"),
    "rank": (*CIRCO, "--method", "mine", "--lists", "lists.json", "--out", "made.json"),
    "rerank": ("run.json", "--language", "oracle", "--out", "made.json"),
    "run": (*CIRCO, "--method", "random", "--out", "made.json"),
    "score": ("run.json",),
    "setup": ("circo/val",),
    "submit": ("run.json", "--timeout", "20"),
    "table": ("run.json", "--for", "circo"),
    "train cirplant": (*CIRCO, *OUT),
    "train concat": (*CIRCO, *OUT),
    "train magiclens": (*CIRCO, *OUT),
    "train pic2word": (*CIRCO, *OUT),
    "train tirg": (*CIRCO, *OUT),
    "validate": ("run.json",),
}
"""Arguments with which a command loads `circo/val`."""
WITH_ANSWERS = ("make review-import",)
"""They load a benchmark when the answers about its pictures have been taken in, which here are not."""
LONG = (
    "challenge new",
    "leaderboard",
    "train",
    "make circled",
    "datasets publish",
    "embed",
    "setup",
    "submit",
)
"""They load PyTorch, `datasets`, or a database with a server."""


def commands_with(*options: str) -> set[str]:
    found = set()

    def walk(command: Any, path: tuple[str, ...]) -> None:
        for name, child in getattr(command, "commands", {}).items():
            walk(child, (*path, name))
        parameters = (*command.params, *getattr(command, "hidden_params", ()))
        if path and {*options} <= {each for parameter in parameters for each in parameter.opts}:
            found.add(" ".join(path))

    walk(get_command(build()), ())
    return found


def test_every_command_with_the_options_is_called_below() -> None:
    assert commands_with("--data-dir", "--no-checks") == {*CALLS, *WITH_ANSWERS}


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name.startswith(LONG) else [], id=name)
        for name in CALLS
    ],
)
def test_folder_and_mode_reach_the_benchmark_that_a_command_loads(
    home: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts are not the card's: a folder that is read says so, and a mode that arrives takes them."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("CIR_OVERLAYS", "overlays")
    made.write(
        Path("short.json"),
        {"overlay": "short", "benchmark": "circo/val", "benchmark_version": 1, "queries": ["0"]},
    )
    made.write(Path("lists.json"), {"0": ["1"]})
    call = [*command.split(), *CALLS[command], "--data-dir", str(home)]
    if command == "leaderboard rescore":
        cir("--no-checks", "leaderboard", "add", "run.json", "--home", "boards", *call[-2:], code=0)
    wrong = "2 queries, but the card says 220"
    with serving(home.parent / "server") if command == "submit" else nullcontext() as server:
        call += [] if server is None else ["--to", server.url]
        refused, taken = cir(*call), cir("--no-checks", *call)
    assert wrong in f"{refused.output} {refused.exception}"
    assert wrong not in f"{taken.output} {taken.exception}"
    assert {"CIR_DATA_HOME", "CIR_VERIFICATION_MODE"} & {*os.environ} == set(), "they last for one command"
