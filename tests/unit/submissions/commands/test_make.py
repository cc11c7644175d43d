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


def filtered(folder: Path, benchmark: str, *filters: str | None) -> str:
    """A run of CIRCLED's construction that is done; of each session the filter that removed it."""
    run = Workspace(folder, "circled", {"filters": "what becomes of each"}, {"benchmark": benchmark})
    run.rows("filters", lambda: [{"filter": each, "kept": each is None} for each in filters])
    return str(folder)


def test_status_of_several_runs_is_the_table_of_filters(folder: Path, tmp_path: Path) -> None:
    dress = filtered(tmp_path / "dress", "fashioniq/dress_val", "success", None, None)
    shirt = filtered(tmp_path / "shirt", "fashioniq/shirt_val", "rank margin", "success", "success", None)
    cirr_val = filtered(tmp_path / "cirr", "cirr/val", "several turns", None)
    head, *lines = cir("status", dress, shirt, cirr_val).stdout.splitlines()[1:]
    columns = [head.index(word) for word in ("begun", "success", "several", "rank", "kept")]
    table = {line.split()[0]: [int(line[place:].split()[0]) for place in columns] for line in lines[:5]}
    assert table == {
        "fashioniq_dress_val": [3, 1, 0, 0, 2],
        "fashioniq_shirt_val": [4, 2, 0, 1, 1],
        "cirr_val": [2, 0, 1, 0, 1],
        "fashioniq": [7, 3, 0, 1, 3],
        "total": [9, 3, 1, 1, 4],
    }
    begun = cir("status", str(folder), dress, shirt).stdout
    assert begun.index("captions pictures") < begun.index("Sessions by filter"), "one that is not done"
    assert len(orjson.loads(cir("status", dress, shirt, "--json").stdout)) == 2
    again = filtered(tmp_path / "again", "cirr/val", None)
    assert "another run is of cirr/val, too. Fix:" in str(cir("status", cirr_val, again).exception)


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
