"""The entries: every rank file is whole, is what its list says, and was made by the shipped encoder."""

from __future__ import annotations

import gzip
import hashlib
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

import submissions
from leaderboard.cli import build
from submissions.encoders import protocol as encoders
from submissions.encoders.model_files import model_files
from submissions.entries import BENCHMARKS, BaselineEntry, entries, folder
from submissions.entries.make import entered, file_name, make_entries
from submissions.methods import cirplant
from submissions.rank_file.model import RankFile
from submissions.running.baselines import baselines
from submissions.scoring.intervals import intervals

ENTRIES = entries()


@pytest.fixture(scope="module")
def read() -> dict[str, RankFile]:
    found = {}
    for entry in ENTRIES:
        rank_file = submissions.read(entry.path)
        assert isinstance(rank_file, RankFile)
        found[entry.file] = rank_file
    return found


def test_all_baselines_have_an_entry_and_every_file_is_listed() -> None:
    wanted = [file_name(each, benchmark) for benchmark in BENCHMARKS for each in entered(benchmark)]
    for benchmark in BENCHMARKS:
        of_all = [file_name(each, benchmark) for each in baselines(benchmark, encoder="shapes").run]
        assert set(of_all) < set(wanted)
    assert [entry.file for entry in ENTRIES] == wanted
    assert sorted(path.name for path in folder().glob("*.json.gz")) == sorted(wanted)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.file)
def test_an_entry_is_valid_and_what_the_list_says(entry: BaselineEntry, read: dict[str, RankFile]) -> None:
    content = gzip.decompress(entry.path.read_bytes())
    assert hashlib.sha256(content).hexdigest() == entry.sha256
    rank_file = read[entry.file]
    assert rank_file.to_json() == content
    assert (rank_file.benchmark, rank_file.method.name) == (entry.benchmark, entry.method)
    checked = submissions.validate(content, entry.benchmark, name=entry.file)
    assert checked.findings == ()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.file)
def test_its_command_would_make_it(entry: BaselineEntry) -> None:
    words = shlex.split(entry.command)
    assert words[:2] == ["cir", "run"]
    run = get_command(build()).commands["run"]  # type: ignore[attr-defined]
    given = run.make_context("run", words[2:]).params
    assert (given["benchmark"], str(given["out"])) == (entry.benchmark, entry.file)
    assert (given["device"] == "cpu") == (given["encoder"] == "shapes")


def test_names_tell_them_apart_on_a_board() -> None:
    for benchmark in BENCHMARKS:
        names = [entry.method for entry in entries(benchmark)]
        assert len(set(names)) == len(names)


def test_they_were_made_by_the_encoder_that_is_shipped(read: dict[str, RankFile]) -> None:
    weights = Path(encoders.__file__).with_name("shapes_encoder")
    revision = model_files(weights, None).fingerprint()
    said = {file: each.method.backbone for file, each in read.items() if "-shapes" in file.split(".")[0]}
    assert len(said) > len(BENCHMARKS)
    stale = {file for file, backbone in said.items() if f"revision {revision[:12]})" not in backbone}
    assert stale == set(), "Fix: python -m submissions.entries.make"


def test_words_and_picture_together_beat_either_alone(read: dict[str, RankFile]) -> None:
    """On shapes/val at Recall@10, by bootstrap intervals that do not overlap."""
    found = {
        method: intervals(submissions.score(read[f"{method}-shapes.shapes-val.json.gz"]), draws=2000)
        for method in ("image_text_sum", "image_only", "text_only", "cirevl")
    }
    ends = {method: each.values["recall@10"] for method, each in found.items()}
    for alone in ("image_only", "text_only"):
        assert ends["image_text_sum"].low > ends[alone].high
        assert ends["cirevl"].low > ends[alone].high


def test_words_and_picture_together_beat_the_stronger_picture_alone(read: dict[str, RankFile]) -> None:
    """On shapes/val at Recall@10, by paired tests; the one without weights is the stronger."""
    alone = {
        name: submissions.score(read[f"image_only-{name}.shapes-val.json.gz"])
        for name in ("pixels", "shapes")
    }
    assert alone["pixels"].metrics["recall@10"] > alone["shapes"].metrics["recall@10"]
    for method in ("image_text_sum", "cirevl"):
        made = submissions.score(read[f"{method}-shapes.shapes-val.json.gz"])
        (pair,) = submissions.compare([made, alone["pixels"]], metrics=["recall@10"]).pairs
        found = pair.differences["recall@10"]
        assert found.significant
        assert found.difference > 0, method


def test_sessions_are_found_more_often_with_every_turn(read: dict[str, RankFile]) -> None:
    for entry in entries("shapes/multiturn_val"):
        if entry.file.startswith("image_text_sum-shapes"):
            metrics = submissions.score(read[entry.file]).metrics
            hits = [metrics[f"hits@10@turn{turn}"] for turn in (1, 2, 3)]
            assert hits == sorted(set(hits)), entry.file
            assert hits[-1] > hits[0] + 0.2


def test_all_entries_together_stay_below_three_megabytes() -> None:
    assert sum(entry.path.stat().st_size for entry in ENTRIES) < 3_000_000


@pytest.mark.slow
def test_those_of_the_encoder_are_made_again_the_same(tmp_path: Path, read: dict[str, RankFile]) -> None:
    """To the byte on the machine that made them; elsewhere but for neighbours whose scores all but tie."""
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    names = (
        "image_text_sum-shapes.shapes-val.json.gz",
        "image_text_sum-shapes-latest.shapes-multiturn_val.json.gz",
        "cirplant-shapes.shapes-val.json.gz",
        "tirg-shapes-latest.shapes-multiturn_val.json.gz",
    )
    for entry in make_entries(tmp_path, names):
        listed = next(each for each in ENTRIES if each.file == entry.file)
        assert (entry.method, entry.command) == (listed.method, listed.command)
        if entry.sha256 == listed.sha256:
            continue
        mine, theirs = (_places(each) for each in (submissions.read(tmp_path / entry.file), read[entry.file]))
        assert mine.keys() == theirs.keys()
        moved = sum(
            image != other for key in mine for image, other in zip(mine[key], theirs[key], strict=True)
        )
        assert moved <= 0.005 * sum(map(len, mine.values()))


def _places(rank_file: object) -> dict[str, list[str]]:
    """One list a question."""
    assert isinstance(rank_file, RankFile)
    found = {}
    for key, value in rank_file.rankings.items():
        for turn, ranking in enumerate(value if isinstance(value[0], list) else [value]):
            found[f"{key}#{turn}"] = ranking
    return found


@pytest.mark.parametrize("name", ["cirplant", "tirg"])
def test_shipped_checkpoints_are_small_and_made_their_entries(name: str, read: dict[str, RankFile]) -> None:
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    from submissions.encoders.loading import load_encoder
    from submissions.methods.registry import composer

    weights = Path(cirplant.__file__).with_name("heads") / "shapes" / name / "model.safetensors"
    assert weights.stat().st_size < 1_500_000
    method = composer(name, checkpoint="shapes").method(load_encoder("shapes", device="cpu"))
    assert f"head {hashlib.sha256(weights.read_bytes()).hexdigest()[:12]}" in method.backbone
    assert read[f"{name}-shapes.shapes-val.json.gz"].method.backbone == method.backbone
