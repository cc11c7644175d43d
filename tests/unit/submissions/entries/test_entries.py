"""`cir entries`: what is made here, what is kept, what is copied, and what is said of a file that differs."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from programs import run_program
from typer.testing import CliRunner, Result

from leaderboard.cli import build
from submissions.entries import entries, folder
from submissions.entries import make as making

ROOT = Path(__file__).resolve().parents[4]
WEIGHTLESS = [entry.file for entry in entries() if "--encoder shapes" not in entry.command]


@pytest.fixture(autouse=True)
def _caches(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "entries-cache"))


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, making.Placed]:
    """All entries, put into a folder that is not there before."""
    out = tmp_path_factory.mktemp("entries") / "some" / "folder"
    return {each.entry.file: each for each in making.place_entries(out)}


@pytest.fixture
def whole(placed: dict[str, making.Placed]) -> Path:
    """That folder."""
    return placed["random.shapes-val.json.gz"].path.parent


def cir(*arguments: str) -> Result:
    return CliRunner().invoke(build(), list(arguments), catch_exceptions=False)


def sha256(path: Path) -> str:
    return hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()


def as_shipped(benchmark: str, whole: Path, other: str = "") -> list[Any]:
    """The list as if the package shipped what this machine makes, but for one file."""
    return [
        dataclasses.replace(entry, sha256="0" * 64 if entry.file == other else sha256(whole / entry.file))
        for entry in entries(benchmark)
    ]


@pytest.mark.slow
def test_those_without_weights_are_made_and_others_copied(placed: dict[str, making.Placed]) -> None:
    assert placed.keys() == {entry.file for entry in entries()}
    assert [name for name, each in placed.items() if each.origin == "made"] == WEIGHTLESS
    assert [name for name in WEIGHTLESS if not placed[name].same] == []
    for name, each in placed.items():
        assert each.path.name == name
        assert each.same == (sha256(each.path) == each.entry.sha256)
        if each.origin == "copied":
            assert each.path.read_bytes() == (folder() / name).read_bytes()


@pytest.mark.slow
def test_what_is_there_is_kept_and_what_is_missing_or_broken_is_made(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(folder(), out, ignore=shutil.ignore_patterns("*.py", "*.yaml", "__pycache__"))
    missing, cut, other, *rest = WEIGHTLESS
    (out / missing).unlink()
    (out / cut).write_bytes((out / cut).read_bytes()[:500])
    (out / other).write_bytes(gzip.compress(b"{}"))
    before = {name: (out / name).stat().st_mtime_ns for name in rest}
    origins = {each.entry.file: each.origin for each in making.place_entries(out)}
    assert {name: origins[name] for name in WEIGHTLESS} == {
        **dict.fromkeys((missing, cut, other), "made"),
        **dict.fromkeys(rest, "kept"),
    }
    assert {name: (out / name).stat().st_mtime_ns for name in rest} == before
    for name in (missing, cut, other):
        assert sha256(out / name) == sha256(whole / name)


@pytest.mark.slow
def test_a_run_that_was_interrupted_goes_on(whole: Path, tmp_path: Path) -> None:
    run = making.place_entries(tmp_path)
    first = next(run)
    run.close()
    assert list(tmp_path.iterdir()) == [first.path]
    kept = shutil.copytree(whole, tmp_path / "rest", ignore=shutil.ignore_patterns(first.path.name))
    for path in kept.iterdir():
        path.replace(tmp_path / path.name)
    origins = {each.entry.file: (each.origin, each.same) for each in making.place_entries(tmp_path)}
    assert origins[first.entry.file] == (("kept" if first.same else "made"), first.same)


def test_the_command_says_which_differ_and_its_fix_works(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "random.shapes-val.json.gz"

    shutil.copytree(whole, tmp_path / "out")
    monkeypatch.setattr(making, "entries", lambda benchmark: as_shipped(benchmark, whole, other))
    found = cir("entries", "--out", str(tmp_path / "out"))
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert [Path(line.split()[0]).name for line in lines] == WEIGHTLESS
    assert lines[0].endswith("made here, DIFFERS from the shipped one")
    assert {line.partition("  ")[2] for line in lines[1:]} == {"made earlier, same as shipped"}
    assert f"1 differ from the shipped ones: {other}; 22 of the shapes encoder are copied" in found.stderr
    _, _, command = found.stderr.partition("What differs: cir ")
    compared = cir(*shlex.split(command))
    assert compared.exit_code == 0, compared.output
    assert "2 methods on shapes/val" in compared.stdout


def test_entries_that_are_as_shipped_are_reported_as_the_same_in_json(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(whole, tmp_path / "out")
    monkeypatch.setattr(making, "entries", lambda benchmark: as_shipped(benchmark, whole))
    found = cir("entries", "--out", str(tmp_path / "out"), "--json")
    rows = json.loads(found.stdout)
    assert [Path(row["file"]).name for row in rows if row["origin"] == "kept"] == WEIGHTLESS
    assert all(row["same"] and row["command"].startswith("cir run --benchmark") for row in rows)
    assert "8 rank files made on this machine, all the same as shipped; 22 of" in found.stderr


def test_the_folder_of_the_shipped_files_is_refused() -> None:
    from cir_metrics.errors import CallError

    with pytest.raises(CallError, match="is the folder of the shipped files"):
        cir("entries", "--out", str(folder()))


@pytest.mark.slow
def test_make_run_ranks_compares_and_shows_the_boards(tmp_path: Path) -> None:
    """The Makefile's own recipe, twice, in the environment of the tests instead of one of its own."""
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    cir_here = venv / "bin" / "cir"
    cir_here.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m leaderboard.cli "$@"\n', encoding="utf-8")
    cir_here.chmod(0o755)
    (venv / ".installed").touch()
    said = []
    for _ in range(2):
        done = run_program(
            ["make", "run", "SERVE=0", f"RUN_VENV={venv}", f"STATE={tmp_path / 'state'}"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        said.append(done)
    for name in WEIGHTLESS:
        assert f"{name}  made here, " in said[0].stdout
    assert "Ranking shapes by the methods that need no weights ..." in said[0].stderr
    shown = re.compile(r"^Shapes, single-turn .*?(?=^Playing |^Real )", re.MULTILINE | re.DOTALL)
    boards = [shown.findall(each.stdout)[0] for each in said]
    assert boards[0] == boards[1]
    # Twelve entries on the one board, eighteen on the other; the kind stands before the name.
    kinds = Counter(re.findall(r"^ *(?:\d+|-) +(?:(?:\d+|-) +)?(baseline|oracle) ", boards[0], re.MULTILINE))
    oracles = sum("oracle" in entry.method for entry in entries())
    baselines = sum(entry.file.startswith(("random.", "image_only-", "text_only-")) for entry in entries())
    assert kinds == {"baseline": baselines, "oracle": oracles}
    assert said[0].stdout.index("Shapes, multi-turn") < said[0].stdout.index("Playing dialogues")
    assert said[0].stderr.count("round 5 of 5: ") == 3
    assert "Playing dialogues" not in said[1].stdout
    home = str(tmp_path / "state" / "leaderboard")
    talks = cir("leaderboard", "show", "shapes/dialogue_val", "--home", home).stdout
    # Behind the rank stand the kind, where it is one, and the name.
    assert re.findall(r"^(\d|-) +(Image \+ text|baseline +(?:Image only|Random))", talks, re.MULTILINE) == [
        ("1", "Image + text"),
        ("-", "baseline  Image only"),
        ("-", "baseline  Random"),
    ]
