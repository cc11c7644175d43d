"""Other forms than the native one are explained, too: evaluators' files, bundles, sessions, dialogues."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmark_world.dialogues import shapes_dialogue
from datasets_publishers import write_circo, write_cirr, write_fashioniq, write_template

import cir_datasets
import submissions
from submissions.explaining.repair import repair
from submissions.rank_file.model import Method, RankBundle, RankFile
from submissions.transcripts.checking import check_transcript
from submissions.transcripts.transcript import write_transcript

pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")

CATEGORIES = ("dress", "shirt", "toptee")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small stand-ins for the publishers' files."""
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    for category in CATEGORIES:
        write_fashioniq(tmp_path / "data", category, "val")
    write_circo(tmp_path / "data", "val")
    write_cirr(tmp_path / "data", "val")
    write_template(tmp_path / "data", "zerosight")
    return tmp_path / "data"


def whole_lists(benchmark: str) -> dict[str, list[str]]:
    """The gallery as it stands, for each query."""
    loaded = cir_datasets.load(benchmark)
    return {query: list(loaded.gallery or ()) for query in loaded.query_ids}


def circo(lists: dict[str, list[str]]) -> Any:
    return {query: list(map(int, ids)) for query, ids in lists.items()}


def cirr_subset(lists: dict[str, list[str]]) -> Any:
    first = {query: ids[:3] for query, ids in lists.items()}
    return {"version": "rc2", "metric": "recall_subset", **first}


def fashioniq_items(lists: dict[str, list[str]]) -> Any:
    rows = cir_datasets.load("fashioniq/shirt_val").rows()
    keys = {"candidate": "reference_image_id", "captions": "captions", "target": "target_image_id"}
    named = [{said: row[key] for said, key in keys.items()} for row in rows]
    return [{**item, "ranking": ids} for item, ids in zip(named, lists.values(), strict=True)]


@pytest.mark.parametrize(
    ("benchmark", "form", "made"),
    [
        ("circo/val", "circo-server", circo),
        ("cirr/val", "cirr-server", cirr_subset),
        ("fashioniq/shirt_val", "fashioniq", fashioniq_items),
        ("zerosight/test", "zerosight", dict),
    ],
    ids=["circo", "cirr", "fashioniq", "zerosight"],
)
def test_files_that_name_no_benchmark_are_told_by_their_queries(
    benchmark: str, form: str, made: Callable[[dict[str, list[str]]], Any], home: Path
) -> None:
    explanation = submissions.explain(json.dumps(made(whole_lists(benchmark))).encode())
    (rankings,) = explanation.rankings
    assert (explanation.benchmark, explanation.format) == (benchmark, form)
    assert rankings.counts["answered"] == rankings.counts["queries"] == len(cir_datasets.load(benchmark))
    assert rankings.counts["reference_held"] > 0
    assert {reading.reference for reading in rankings.readings} == {"kept", "removed"}


def test_a_suite_has_the_means_of_its_members_under_each_reading_and_over_the_union(home: Path) -> None:
    members = [f"fashioniq/{category}_val" for category in CATEGORIES]
    runs = [RankFile(name, 1, Method(name="m"), whole_lists(name)) for name in members]
    explanation = submissions.explain(RankBundle("fashioniq/val", tuple(runs)))
    assert explanation.benchmark == "fashioniq/val"
    assert [part.benchmark for part in explanation.rankings] == members
    score = submissions.score(RankBundle("fashioniq/val", tuple(runs)))
    whole = {reading.label: reading for reading in explanation.readings}
    assert whole["reference kept"].metrics.items() >= score.metrics.items()
    # The last image of each stand-in belongs to no query.
    assert {*whole} == {
        "reference kept",
        "reference removed",
        "reference kept, only their own lists",
        "reference removed, only their own lists",
    }
    for part in explanation.rankings:
        galleries = {reading.gallery for reading in part.readings}
        assert galleries == {"", f"{part.benchmark}_union"}
    assert all(name in explanation.text() for name in (*members, "mean over the members"))


def test_one_member_where_a_suite_was_asked_for_is_explained_alone(home: Path) -> None:
    one = RankFile("fashioniq/shirt_val", 1, Method(name="m"), whole_lists("fashioniq/shirt_val"))
    explanation = submissions.explain(json.dumps(one.to_dict()).encode(), "fashioniq/val")
    assert (explanation.benchmark, explanation.asked) == ("fashioniq/shirt_val", "fashioniq/val")
    assert "wrong-benchmark" in {finding.code for finding in explanation.report.errors}


def test_sessions_are_explained_turn_by_turn() -> None:
    benchmark = cir_datasets.load("shapes/multiturn_val")
    lists: dict[str, list[list[str]]] = {}
    held = 0
    for number, row in enumerate(benchmark.rows()):
        lists[row["session_id"]] = []
        for turn in row["turns"]:
            others = [each for each in (benchmark.gallery or ())[:40] if each != turn["reference_image_id"]]
            kept = [turn["reference_image_id"]] if number % 2 else []
            held += len(kept)
            lists[row["session_id"]].append(
                list(dict.fromkeys([*kept, *row["ground_truth_ids"][:1], *others]))[:10]
            )
    content = json.dumps(lists).encode()
    explanation = submissions.explain(content, "shapes/multiturn_val")
    (rankings,) = explanation.rankings
    counts = rankings.counts
    assert counts["reference_held"] == counts["reference_first"] == held
    assert counts["lists"] == counts["references"] == sum(map(len, lists.values()))
    kept, removed = rankings.readings
    assert kept.metrics.items() >= submissions.score(content, "shapes/multiturn_val").metrics.items()
    assert removed.at_least.keys() >= {"hits@10@turn1"}


def test_a_dialogue_is_explained_by_the_lists_of_its_rounds(tmp_path: Path) -> None:
    transcript = shapes_dialogue(sessions=12)
    path = write_transcript(transcript, tmp_path / "run.jsonl")
    explanation = submissions.explain(path)
    (rankings,) = explanation.rankings
    assert (explanation.benchmark, explanation.format) == ("shapes/val", "cir-transcript")
    assert rankings.counts["lists"] == len(transcript.rounds)
    assert rankings.counts["answered"] == 12
    assert rankings.counts["reference_held"] == 0
    (reading,) = rankings.readings
    score = check_transcript(path).score(allow_missing=True)
    assert reading.values["hits@10@turn1"] == score.metrics["hits@10@turn1"]


def test_a_dialogue_over_a_gallery_without_sessions_is_explained_as_well(tmp_path: Path) -> None:
    path = write_transcript(shapes_dialogue(sessions=2), tmp_path / "run.jsonl")
    shapes = cir_datasets.load("shapes/val")
    rows = [{key: value for key, value in row.items() if key != "changes"} for row in shapes.rows()]
    mine = cir_datasets.custom_benchmark("mine", rows, gallery=shapes.gallery, folder=tmp_path / "mine")
    header, *rounds = path.read_text().splitlines()
    header = json.dumps({**json.loads(header), "benchmark": mine.id, "benchmark_version": mine.version})
    path.write_text("\n".join([header, *rounds]))
    (rankings,) = submissions.explain(path, mine).rankings
    assert (rankings.benchmark, rankings.counts["lists"]) == (mine.id, len(rounds))


def test_the_sessions_of_a_dialogue_answer_no_single_queries(tmp_path: Path) -> None:
    sessions = RankFile("shapes/multiturn_val", 2, Method(name="m"), {"shapes_val_00000": [["val-000001"]]})
    explanation = submissions.explain(json.dumps(sessions.to_dict()).encode())
    assert (explanation.benchmark, explanation.rankings[0].counts["unknown"]) == ("shapes/multiturn_val", 1)
    assert explanation.ids["shapes/val"] == 1


def test_a_file_in_lines_is_called_so_and_its_benchmark_named_once(tmp_path: Path) -> None:
    whole = submissions.make_rank_file("shapes/val", "random")
    (made,) = submissions.convert([whole.to_json()], "lines")
    explanation = submissions.explain(made.content)
    assert (explanation.format, len(explanation.rankings)) == ("lines", 2)
    assert "shapes/val" not in explanation.text().splitlines()
    assert {"lists", "subsets"} <= {line.split()[0] for line in explanation.text().splitlines() if line}


def test_what_may_be_meant_for_several_benchmarks_names_them(home: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "run.json", tmp_path / "out.json"
    path.write_text(json.dumps(whole_lists("fashioniq/shirt_val")))
    (run,) = repair(path, out).runs
    assert run.benchmark == "fashioniq/shirt_val"
    assert "fashioniq/shirt_val_union_without_reference" in run.also
    (run,) = repair(path, out, benchmark="fashioniq/shirt_val_without_reference").runs
    assert (run.benchmark, run.also) == ("fashioniq/shirt_val_without_reference", ())
    assert run.taken["references"] > 0
