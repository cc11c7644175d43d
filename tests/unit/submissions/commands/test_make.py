"""`cir make status` and `cir make again`."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from cir_datasets.construction.workspace import Workspace
from cir_metrics.errors import MissingExtraError
from leaderboard.cli import build

STAGES = {"captions": "captions pictures", "turns": "walks to the target", "filters": "drops sessions"}


def cir(*words: str) -> Result:
    return CliRunner().invoke(build(), ["make", *words])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = Workspace(tmp_path, "circled", STAGES, {"seed": 1})
    made.rows("captions", lambda: [{"id": "a"}, {"id": "b", "failed": "the picture cannot be read"}])
    (tmp_path / "02-turns.parts").mkdir()
    (tmp_path / "02-turns.parts" / "000000.jsonl").write_text("{}\n")
    return tmp_path


def test_status_shows_every_stage(folder: Path) -> None:
    shown = cir("status", str(folder))
    assert shown.exit_code == 0, shown.output
    table = shown.stdout
    for words in ("captions pictures", "done", "1 parts", "to do"):
        assert words in table
    files = [line.split()[-1] for line in table.splitlines() if ".jsonl" in line]
    assert files == ["01-captions.jsonl", "02-turns.jsonl", "03-filters.jsonl"]


def test_status_as_json_has_values(folder: Path) -> None:
    found = orjson.loads(cir("status", str(folder), "--json").stdout)
    (first, second, third) = found["stages"]
    assert (first["name"], first["state"], first["rows"], first["failed"]) == ("captions", "done", 2, 1)
    assert (second["state"], second["parts"]) == ("begun", 1)
    assert third["state"] == "to do"
    assert (found["pipeline"], found["settings"]) == ("circled", {"seed": 1})


def test_again_forgets_a_stage_and_those_behind_it(folder: Path) -> None:
    done = cir("again", str(folder), "--from", "turns")
    assert done.exit_code == 0, done.output
    assert "02-turns.parts" in done.stderr
    assert not (folder / "02-turns.parts").exists()
    assert (folder / "01-captions.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("status", "FOLDER/nowhere"), "it holds no run of `cir make`. Fix: name the folder of one"),
        (("again", "FOLDER", "--from", "turn"), "no stage 'turn'. Did you mean 'turns'?"),
        (("again", "FOLDER/nowhere", "--from", "turns"), "it holds no run of `cir make`"),
    ],
)
def test_mistakes_explain_themselves(folder: Path, words: tuple[str, ...], said: str) -> None:
    done = cir(*(word.replace("FOLDER", str(folder)) for word in words))
    assert said in str(done.exception)
    assert not (folder / "nowhere").exists()


@pytest.mark.parametrize("words", [["cirr"], ["circled", "--language", "oracle"]], ids=["cirr", "circled"])
def test_what_plots_at_the_end_asks_for_it_at_the_beginning(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = tmp_path / "made"
    done = cir(*words, "--benchmark", "shapes/val", "--encoder", "shapes", "--out", str(out))
    assert isinstance(done.exception, MissingExtraError), done.output
    assert "a plot needs matplotlib" in str(done.exception)
    assert "[construction]" in str(done.exception)
    assert not out.exists()
