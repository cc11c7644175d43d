"""`cir challenge`: what it prints, and what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from leaderboard_world import challenges as world
from typer.testing import CliRunner, Result

import cir_datasets
from cir_datasets.errors import UnpinnedDataWarning
from cir_metrics.errors import CallError, CirError, UnknownNameError
from leaderboard import boards
from leaderboard.cli import build
from leaderboard.errors import BoardError
from submissions.errors import WithheldError


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[world.Places]:
    found = world.places(tmp_path)
    found.use(monkeypatch)
    yield found
    monkeypatch.undo()
    boards.use(None)


def cir(*arguments: str) -> Result:
    done = CliRunner().invoke(build(), ["challenge", *arguments])
    if done.exception is not None:
        raise done.exception
    return done


def new(places: world.Places, *options: str) -> Result:
    queries, gallery = world.write_rows(places.home.parent)
    where = ["--gallery", str(gallery), "--ground-truth", str(places.ground_truth)]
    return cir("new", world.NAME, "--from", str(queries), *where, *options)


def test_a_challenge_is_made_and_checked_by_two_commands(places: world.Places) -> None:
    phases = ["--phase", "dev=2026-01-01/2026-02-01", "--phase", "test=2026-03-01/2026-03-08"]
    said = new(places, "--title", "Autumn", "--a-day", "2", "--at-end", *phases).output
    assert "cir challenge check autumn" in said
    assert "cir submit sample.json --to URL --board autumn/test" in said
    written = yaml.safe_load((places.home / "boards" / "autumn.yaml").read_text(encoding="utf-8"))
    assert [(phase["name"], phase["a_day"], phase["results"]) for phase in written["phases"]] == [
        ("dev", 2, "at_end"),
        ("test", 2, "at_end"),
    ]
    assert boards.board(world.ID).title == "Autumn"
    assert "its ground truth fits, is private" in cir("check").output
    assert "its ground truth fits, is private" in cir("check", world.NAME).output
    places.ground_truth.chmod(0o644)
    with pytest.raises(CirError, match=r"^1 fault\.$"):
        cir("check")
    with pytest.raises(CallError, match="its ground truth is public"):
        cir("check", "shapes/val")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--phase", "dev"], "write NAME=OPENS/CLOSES"),
        (["--phase", "dev=2026-02-01/2026-01-01"], "closes before it opens"),
        (["--phase", "dev=2026-01-01/2026-02-01", "--phase", "test=2026-02-01/2026-03-01"], "^--phase: the"),
        (["--main", "median_rank"], "cannot rank a challenge"),
        (["--ground-truth", "memory://x"], "lies at an absolute path"),
    ],
)
def test_wrong_options_are_refused_and_leave_nothing(
    places: world.Places, options: list[str], words: str
) -> None:
    with pytest.raises((CirError, ValueError), match=words):
        new(places, *options)
    assert not places.secret.exists()
    assert not (places.challenges / world.NAME).exists()
    assert not (places.home / "boards").exists()


def test_what_may_give_the_truth_away_is_warned_of(places: world.Places, tmp_path: Path) -> None:
    places.secret.mkdir(mode=0o755)
    row = world.rows()[0]
    said = new(places).stderr
    assert f"others may read the folder of the ground truth. Fix: chmod 700 {places.secret}" in said
    assert "captions" not in said
    queries, gallery = world.write_rows(tmp_path)
    revealing = json.dumps(row | {"caption": f"like {row['target_image_id']}, but red"})
    queries.write_text(
        "\n".join([revealing, *queries.read_text(encoding="utf-8").splitlines()[1:]]), encoding="utf-8"
    )
    crooked = f"{tmp_path}/deep/../deep/winter.jsonl"
    where = ["--gallery", str(gallery), "--ground-truth", crooked]
    said = cir("new", "winter", "--from", str(queries), *where).stderr
    assert f"may tell it: 1 times, first in '{row['query_id']}'" in said
    assert "others may read" not in said
    assert boards.board("winter/test").ground_truth == f"{tmp_path}/deep/winter.jsonl"


def test_a_challenge_is_removed_without_its_truth(places: world.Places) -> None:
    new(places)
    board = places.home / "boards" / "autumn.yaml"
    note = places.challenges / world.NAME / "note.txt"
    note.write_text("mine", encoding="utf-8")
    done = CliRunner().invoke(build(), ["challenge", "remove", world.NAME], input="n\n")
    assert "nothing was removed" in str(done.exception)
    assert board.is_file()
    said = cir("remove", world.NAME, "--yes").output
    assert f"{board}: removed" in said
    assert f"{note}: stays" in said
    assert places.ground_truth.is_file()
    assert [path.name for path in places.challenges.rglob("*")] == [world.NAME, "note.txt"]
    assert cir("check").output == ""
    with pytest.raises(CallError, match=f"no challenge '{world.NAME}'"):
        cir("remove", world.NAME, "--yes")
    with pytest.raises(CallError, match="is not a name"):
        cir("remove", "../boards", "--yes")


def test_a_challenge_whose_folder_is_gone_is_removed(places: world.Places) -> None:
    new(places)
    shutil.rmtree(places.challenges / world.NAME)
    board = yaml.safe_load((places.home / "boards" / "autumn.yaml").read_text(encoding="utf-8"))
    with pytest.raises(BoardError, match=r"is not in .* cir challenge remove autumn$"):
        boards.parse(board, "autumn.yaml")
    assert "autumn.yaml: removed" in cir("remove", world.NAME, "--yes").output
    places.ground_truth.unlink()
    new(places)
    assert boards.board(world.ID).sealed


def test_names_and_sources_that_cannot_be_are_refused(places: world.Places, tmp_path: Path) -> None:
    truth = ["--ground-truth", str(places.ground_truth)]
    with pytest.raises(CallError, match="is not a name"):
        cir("new", "../up", "--from", "shapes/val", *truth)
    with pytest.raises(CallError, match="is the name of a benchmark"):
        cir("new", "shapes", "--from", "shapes/val", *truth)
    with pytest.raises(UnknownNameError, match="no benchmark 'shapes/vall'"):
        cir("new", "autumn", "--from", "shapes/vall", *truth)
    queries, _ = world.write_rows(tmp_path)
    with pytest.raises(CallError, match="its gallery is missing"):
        cir("new", "autumn", "--from", str(queries), *truth)


def test_who_has_the_folder_joins_and_has_the_benchmark(
    places: world.Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new(places)
    handed = tmp_path / "handed" / world.NAME
    shutil.copytree(places.challenges / world.NAME, handed)
    monkeypatch.setenv("CIR_CHALLENGES", str(tmp_path / "elsewhere"))
    with pytest.raises(UnknownNameError):
        cir_datasets.load(world.ID)
    assert cir("join", str(handed)).output == "autumn/test: 60 queries, 120 images\n"
    assert len(cir_datasets.load(world.ID)) == world.QUERIES
    with pytest.raises(CallError, match="is there already"):
        cir("join", str(handed))


def test_a_folder_that_is_not_whole_is_not_joined(
    places: world.Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new(places)
    handed = tmp_path / "handed" / world.NAME
    shutil.copytree(places.challenges / world.NAME, handed)
    monkeypatch.setenv("CIR_CHALLENGES", str(tmp_path / "elsewhere"))
    card = handed / "card.yaml"
    good = card.read_text(encoding="utf-8")
    for wrong, words in (
        (good.replace("- queries.json", "- ../../secret.json"), "is not a file"),
        (good.replace("name: autumn", "name: winter"), "its name is 'winter'"),
        (good.replace("ground_truth: withheld", "ground_truth: public"), "is withheld"),
        (good.replace("publisher: challenge", "publisher: github"), "is not the card of a challenge"),
        ("- a list", "card.yaml"),
    ):
        card.write_text(wrong, encoding="utf-8")
        with pytest.raises(CirError, match=words):
            cir("join", str(handed))
        assert not (tmp_path / "elsewhere" / world.NAME).exists()
    card.write_text(good, encoding="utf-8")
    (handed / "queries.json").write_bytes((handed / "queries.json").read_bytes() + b" ")
    with pytest.warns(UnpinnedDataWarning, match="not the file that the card pins"):
        cir("join", str(handed))
    # Other data than the organisers hand out is never taken for theirs.
    with pytest.warns(UnpinnedDataWarning):
        assert not cir_datasets.load(world.ID).pinned


def test_who_asks_for_a_score_is_sent_to_the_organisers(places: world.Places, tmp_path: Path) -> None:
    new(places)
    out = tmp_path / "run.json"
    ran = CliRunner().invoke(
        build(), ["run", "--benchmark", world.ID, "--method", "random", "--out", str(out)]
    )
    assert f"Where it stands: cir submit {out} --to URL" in ran.stderr
    done = CliRunner().invoke(build(), ["score", str(out)])
    assert isinstance(done.exception, WithheldError)
    assert f"its ground truth is sealed. Fix: cir submit {out} --to URL" in str(done.exception)


def test_boards_of_ones_own_may_stand_alone(places: world.Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_LEADERBOARD_BOARDS", "own")
    new(places)
    assert boards.ids() == (world.ID,)
    monkeypatch.setenv("CIR_LEADERBOARD_BOARDS", "mine")
    with pytest.raises(CallError, match="write own"):
        cir("check")
    monkeypatch.setenv("CIR_LEADERBOARD_BOARDS", "all")
    boards.use(places.home)
    assert {world.ID, "cirr/val"} < set(boards.ids())
