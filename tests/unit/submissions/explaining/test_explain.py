"""Every defect of a file is counted, and its numbers are those of a plain loop under each reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cir_here import cir
from datasets_publishers import edit, write_cirr

import cir_datasets
import submissions
from submissions.explaining.explanation import Explanation, Rankings
from submissions.explaining.readings import FileReading
from submissions.rank_file.model import Method, RankFile

pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")

Lists = dict[str, list[str]]

SHAPES = cir_datasets.load("shapes/val")
ROWS = {row["query_id"]: row for row in SHAPES.rows()}
DEPTH = 50


@pytest.fixture(scope="module")
def ranked() -> Lists:
    """Lists without fault; the targets stand at the places 1 to 60, of which 50 are ranked."""
    gallery, made = list(SHAPES.gallery or ()), {}
    for number, (query, row) in enumerate(ROWS.items()):
        target, place = row["target_image_id"], number % 60
        left_out = {target, row["reference_image_id"]}
        others = [image for image in gallery[number * 5 : number * 5 + 80] if image not in left_out]
        made[query] = [*others[:place], target, *others[place:]][:DEPTH]
    return made


def explained(lists: Any, benchmark: str | None = SHAPES.id) -> Explanation:
    return submissions.explain(json.dumps(lists).encode(), benchmark, name="run.json")


def the(explanation: Explanation) -> tuple[Rankings, dict[str, int]]:
    (rankings,) = explanation.rankings
    return rankings, rankings.counts


def recall(lists: Lists, k: int, left_out: Callable[[str, str], bool] = lambda query, image: False) -> float:
    """The share of queries whose target is one of the first k images, by a plain loop."""
    hits = 0
    for query, ids in lists.items():
        left = [image for image in ids if not left_out(query, image)]
        hits += ROWS[query]["target_image_id"] in left[:k]
    return hits / len(lists)


def is_reference(query: str, image: str) -> bool:
    return image == ROWS[query]["reference_image_id"]


def by_label(explanation: Explanation) -> dict[str, FileReading]:
    return {reading.label: reading for reading in the(explanation)[0].readings}


def with_references(lists: Lists) -> Lists:
    """The reference first in every second list, fourth in every third of the others."""
    made = {}
    for number, (query, ids) in enumerate(lists.items()):
        reference, place = ROWS[query]["reference_image_id"], 0 if number % 2 == 0 else 3
        made[query] = ids
        if number % 2 == 0 or number % 3 == 0:
            made[query] = [*ids[:place], reference, *ids[place:]][:DEPTH]
    return made


def test_a_file_without_fault_has_one_reading_with_the_numbers_of_its_score(ranked: Lists) -> None:
    explanation = explained(ranked)
    rankings, counts = the(explanation)
    score = submissions.score(json.dumps(ranked).encode(), "shapes/val")
    (reading,) = rankings.readings
    assert (explanation.benchmark, explanation.report.ok, reading.at_least) == ("shapes/val", True, {})
    assert (
        reading.metrics.items()
        >= {name: value for name, value in score.metrics.items() if "@" in name}.items()
    )
    assert rankings.listed_in == "shapes/val"
    odd = ("unknown", "short", "doubled", "reference_held", "outside", "outside_held")
    assert [counts[name] for name in odd] == [0] * len(odd)
    assert (counts["queries"], counts["answered"], counts["lists"]) == (300, 300, 300)
    assert (counts["shortest"], counts["longest"]) == (DEPTH, DEPTH)


def test_references_are_counted_and_taken_out(ranked: Lists) -> None:
    lists = with_references(ranked)
    explanation = explained(lists, None)
    rankings, counts = the(explanation)
    assert (counts["reference_held"], counts["reference_first"]) == (200, 150)
    assert rankings.reference_ranks == {"1-1": 150, "2-5": 50}
    kept, removed = by_label(explanation)["reference kept"], by_label(explanation)["reference removed"]
    for k in (1, 5, 10):
        assert kept.metrics[f"recall@{k}"] == recall(lists, k)
        assert removed.metrics[f"recall@{k}"] == recall(lists, k, is_reference)
    assert kept.metrics["recall@1"] < removed.metrics["recall@1"]
    # Lists that lose one hold 49: the number may be higher, and is given as such.
    assert (kept.depth, removed.depth) == (DEPTH, DEPTH - 1)
    assert removed.at_least["recall@50"] == recall(lists, 50, is_reference)
    assert not explanation.report.ok


def test_doubles_are_counted_and_taken_out(ranked: Lists) -> None:
    lists = {query: [ids[0], *ids[:-1]] for query, ids in ranked.items()}
    explanation = explained(lists)
    assert the(explanation)[1]["doubled"] == 300
    found = by_label(explanation)
    assert found["doubles kept"].metrics["recall@5"] == recall(lists, 5)
    assert found["doubles removed"].metrics["recall@5"] == recall(ranked, 5)


def test_outsiders_are_counted_and_taken_out(ranked: Lists) -> None:
    lists = {
        query: ["stranger", *ids] if query < "shapes_val_00100" else ids for query, ids in ranked.items()
    }
    explanation = explained(lists)
    counts = the(explanation)[1]
    assert (counts["outside"], counts["outside_held"], counts["outside_first"]) == (1, 100, 100)
    found = by_label(explanation)
    assert found["as it stands"].metrics["recall@1"] == recall(lists, 1)
    only = found["only shapes/val"]
    assert only.metrics["recall@1"] == recall(ranked, 1)


def test_short_lists_give_no_number_that_they_cannot_hold(ranked: Lists) -> None:
    lists = {query: ids[:7] for query, ids in ranked.items()}
    explanation = explained(lists)
    assert the(explanation)[1]["short"] == 300
    (reading,) = the(explanation)[0].readings
    assert {name for name in reading.values if name.startswith("recall")} == {"recall@1", "recall@5"}
    first = next(iter(lists))
    lists = {**ranked, first: ranked[first][:7]}
    (reading,) = the(explained(lists))[0].readings
    assert {f"recall@{k}": recall(lists, k) for k in (10, 50)}.items() <= reading.at_least.items()
    assert "recall@5" in reading.metrics
    assert not any(name.startswith("pnr_map") for name in reading.at_least)


def test_missing_and_unknown_queries_are_counted_and_numbers_given_with_and_without(ranked: Lists) -> None:
    lists = {query: ids for query, ids in ranked.items() if query >= "shapes_val_00100"}
    explanation = explained({**lists, "nobody": ["x"]})
    rankings, counts = the(explanation)
    assert (counts["answered"], counts["unknown"]) == (200, 1)
    answered, misses = rankings.readings
    assert (answered.queries, misses.queries, misses.misses) == (200, 300, True)
    assert answered.metrics["recall@5"] == recall(lists, 5)
    assert misses.metrics["recall@5"] == pytest.approx(recall(lists, 5) * 200 / 300)


@pytest.mark.parametrize("native", [False, True])
def test_a_file_for_another_split_is_explained_for_the_one_that_it_answers(
    native: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    for split in ("val", "test1"):
        write_cirr(tmp_path / "data", split)
    for path in (tmp_path / "data/cirr").glob("captions*/*.test1.json"):
        edit(path, lambda records: [each.update(pairid=each["pairid"] + 1000) for each in records])
    test1 = cir_datasets.load("cirr/test1")
    lists: Any = {query: list(test1.gallery or ())[1:] for query in test1.query_ids}
    if native:
        lists = RankFile("cirr/val", 1, Method(name="m"), lists).to_dict()
    explanation = explained(lists, "cirr/val")
    assert (explanation.benchmark, explanation.asked) == ("cirr/test1", "cirr/val")
    assert "wrong-benchmark" in {finding.code for finding in explanation.report.findings}
    rankings, counts = the(explanation)
    assert (counts["answered"], rankings.withheld, rankings.readings) == (3, True, ())
    assert "cirr/test1, not cirr/val" in explanation.text()
    assert "not public" in explanation.text()


def test_a_header_that_names_no_benchmark_that_there_is_hides_nothing(ranked: Lists) -> None:
    header = {
        "format": "cir-rank-file",
        "format_version": 1,
        "benchmark": "shapes/vall",
        "benchmark_version": 2,
    }
    content = {**header, "method": {"name": "m"}, "rankings": ranked}
    explanation = submissions.explain(json.dumps(content).encode())
    assert (explanation.benchmark, the(explanation)[1]["answered"]) == ("shapes/val", 300)
    assert "wrong-benchmark" in {finding.code for finding in explanation.report.errors}


def test_the_command_prints_one_screen_or_the_whole_record(ranked: Lists, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(with_references(ranked)))
    done = cir("explain", str(path), "-b", "shapes/val")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert len(lines) <= 40
    assert all(len(line) <= 110 for line in lines[1:])
    assert "reference removed" in done.stdout
    assert ">=" in done.stdout
    record = json.loads(cir("explain", str(path), "-b", "shapes/val", "--json").stdout)
    assert record == json.loads(json.dumps(submissions.explain(path, "shapes/val").to_dict()))
    assert record["rankings"][0]["counts"]["reference_held"] == 200


def test_a_file_that_cannot_be_read_is_refused_with_its_findings(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"format": "cir-rank-file"')
    done = cir("explain", str(path), code=1)
    assert "malformed" in done.stdout
    assert "Fix:" in done.stdout
    assert cir("explain").returncode == 2
    assert cir("explain", str(tmp_path / "none.json")).returncode == 2


def test_lists_that_begin_with_the_worst_have_the_numbers_of_their_ends(ranked: Lists) -> None:
    good = {query: [ROWS[query]["target_image_id"], *ids] for query, ids in ranked.items()}
    good = {query: list(dict.fromkeys(ids))[:DEPTH] for query, ids in good.items()}
    readings = by_label(explained({query: ids[::-1] for query, ids in good.items()}))
    assert readings["order reversed"].metrics["recall@1"] == pytest.approx(recall(good, 1))
    assert "order reversed" not in by_label(explained(good))


def test_objects_that_name_their_query_are_lists_by_query(ranked: Lists) -> None:
    objects = [{"pairid": query, "ranking": ids} for query, ids in ranked.items()]
    assert the(explained(objects)) == the(explained(ranked))
    assert the(explained(objects, None)) == the(explained(ranked, None))


def test_a_file_without_a_list_that_can_be_read_shows_its_findings(ranked: Lists) -> None:
    explanation = explained({query: list(range(DEPTH)) for query in ranked})
    (finding,) = (each for each in explanation.report.errors if each.code == "bad-type")
    assert "a place in your list of the gallery" in str(finding.fix)
    assert finding.code in explanation.text()
    assert "Fix: " in explanation.text()


@pytest.mark.parametrize(
    "made",
    [
        lambda ids: {query: None if number % 2 else [] for number, query in enumerate(ids)},
        lambda ids: {query: ["val-000001"] * 3_000 for query in ids},
        lambda ids: {query: [["val-000001"]] for query in ids},
        lambda ids: {f"{query}x": ["val-000001"] for query in ids},
    ],
    ids=["nothing", "too long", "turns", "strangers"],
)
def test_what_is_odd_everywhere_is_explained_as_well(made: Callable[[list[str]], Any]) -> None:
    explanation = explained(made(SHAPES.query_ids))
    counts = the(explanation)[1]
    assert not explanation.report.ok
    assert json.loads(json.dumps(explanation.to_dict()))["rankings"][0]["counts"] == counts
    assert "answers" in explanation.text()


def test_lists_whose_queries_nobody_has_are_refused_and_not_guessed() -> None:
    explanation = explained({"a": ["x"], "b": ["y"]}, None)
    assert (explanation.benchmark, explanation.asked, explanation.rankings) == (None, "", ())
    assert "Fix:" in explanation.text()
