"""A benchmark that was prepared without checks, then scored: the message names a way out that works there."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import datasets_publishers as made
import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

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


def cir(*arguments: str) -> Result:
    return CliRunner().invoke(build(), list(arguments))


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
    found = re.search(r"set (CIR_VERIFICATION_MODE)=(no_checks) \(commands have (--no-checks)", said)
    assert found is not None, said
    variable, mode, option = found.groups()
    done = cir(*arguments, option)
    assert done.exit_code == 0, f"{done.output} {done.exception}"
    assert variable not in os.environ, "it lasts for one command"
    monkeypatch.setenv(variable, mode)
    assert cir(*arguments).exit_code == 0
    monkeypatch.setenv(variable, "all_checks")
    assert cir(*arguments, option).exit_code == 0
    assert os.environ[variable] == "all_checks"


def test_scores_say_that_the_counts_were_not_compared(home: Path) -> None:
    assert home.is_dir()
    scored = json.loads(cir("score", "run.json", "--no-checks", "--json").stdout)
    assert all("skipped:counts" in each["text"] for each in scored["signatures"].values())


def test_a_board_takes_it_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", str(home))
    add = ["leaderboard", "add", "--home", "boards", "run.json"]
    refused = cir(*add)
    assert refused.exit_code == 1
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
    """`cir score` has no --data-dir: what its message names is another command, after which it works."""
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "another"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    with pytest.raises(CirError) as caught:
        submissions.score("run.json")
    found = re.search(r"Fix: `cir (.+?)`", str(caught.value))
    assert found is not None, caught.value
    words = found[1].replace("FOLDER", str(home)).split()
    assert cir(*words, "--no-hub-cache").exit_code == 0
    assert cir("score", "run.json").exit_code == 0


def test_every_command_that_loads_a_benchmark_has_the_option() -> None:
    root = get_command(build())

    def options(path: str) -> set[str]:
        command = root
        for word in path.split():
            command = command.commands[word]  # type: ignore[attr-defined]
        return {each for parameter in command.params for each in parameter.opts}

    for path in (
        *COMMANDS,
        "embed",
        "submit",
        "leaderboard add",
        *(f"datasets {x}" for x in ("prepare", "stats", "qrels")),
    ):
        assert "--no-checks" in options(path), path
