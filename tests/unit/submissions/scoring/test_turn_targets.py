"""Sessions whose turns have targets of their own: CIRR's dialogues, at every door that judges a turn."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import datasets_publishers as made
import pytest

import cir_datasets
import cir_metrics
from cir_datasets.export.ground_truth import trec_qrels
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import CallError
from submissions.report import full_report
from submissions.scoring import score

pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")

Rankings = dict[str, list[list[str]]]


@pytest.fixture
def dialogues(tmp_path: Path) -> Benchmark:
    """Two sessions of five turns."""
    made.write_cirr_loops(tmp_path, "val")
    return made.load_unchecked("cirr/dialogues_val", tmp_path)


def any_rankings(benchmark: Benchmark, seed: int) -> Rankings:
    """Of each turn the whole gallery but its reference, shuffled."""
    chance, gallery = random.Random(seed), list(benchmark.gallery or ())
    return {
        row["session_id"]: [
            chance.sample([image for image in gallery if image != turn["reference_image_id"]], 15)
            for turn in row["turns"]
        ]
        for row in benchmark.rows()
    }


def scored(rankings: Rankings, benchmark: Benchmark, **options: Any) -> Any:
    document = {"format": "cir-rank-file", "format_version": 1, "benchmark": benchmark.id}
    document |= {"benchmark_version": benchmark.version, "method": {"name": "any"}, "rankings": rankings}
    return score(json.dumps(document).encode(), benchmark, **options)


def test_a_turn_is_right_where_its_own_target_is(dialogues: Benchmark) -> None:
    """The slow twin: each turn by itself."""
    rankings = any_rankings(dialogues, seed=3)
    report = scored(rankings, dialogues, per_query=True)
    for k in (1, 5, 10):
        shares = []
        for row in dialogues.rows():
            lists = zip(row["turns"], rankings[row["session_id"]], strict=True)
            shares.append(sum(turn["target_image_id"] in ranked[:k] for turn, ranked in lists) / 5)
        assert report.metrics[f"turn_recall@{k}"] == pytest.approx(sum(shares) / 2, abs=1e-15)
        assert [row[f"turn_recall@{k}"] for row in report.per_query] == shares
    lists = [rankings[session] for session in dialogues.query_ids]
    ours = cir_metrics.evaluate_multi_turn(["turn_recall@5"], lists, dialogues.rows()).values
    assert ours["turn_recall@5"] == report.metrics["turn_recall@5"] not in (0.0, 1.0)
    assert report.main == report.metrics["turn_recall@10"]


def test_all_targets_first_is_1_and_the_last_ones_alone_a_fifth(dialogues: Benchmark) -> None:
    best, last = any_rankings(dialogues, seed=4), any_rankings(dialogues, seed=4)
    for row in dialogues.rows():
        for rankings, targets in (
            (best, [turn["target_image_id"] for turn in row["turns"]]),
            (last, row["ground_truth_ids"] * 5),
        ):
            lists = rankings[row["session_id"]]
            for turn, (ranked, target) in enumerate(zip(lists, targets, strict=True)):
                if target in ranked:
                    lists[turn] = [target, *(image for image in ranked if image != target)]
    first, at_the_end = scored(best, dialogues).metrics, scored(last, dialogues).metrics
    assert first["turn_recall@1"] == first["final_recall@10"] == at_the_end["final_recall@10"] == 1.0
    assert at_the_end["turn_recall@1"] == 0.2


def test_the_report_by_turn_is_of_each_turns_target_and_has_no_hits(dialogues: Benchmark) -> None:
    report = full_report(scored(any_rankings(dialogues, seed=5), dialogues))
    grouping = report.groupings["by_turn"]
    shares = [group.values["turn_recall@5"] for group in grouping.groups]
    assert sum(shares) / 5 == pytest.approx(report.score.metrics["turn_recall@5"], abs=1e-15)
    assert {name.partition("@")[0] for name in grouping.groups[0].values} == {
        "turn_recall",
        "mean_rank",
        "median_rank",
        "censored",
    }
    assert grouping.groups[0].random["turn_recall@5"] == pytest.approx(5 / 15, abs=1e-12)
    assert list(report.groupings) == ["by_turn"]


def test_turns_without_targets_have_no_turn_recall() -> None:
    shapes = cir_datasets.load("shapes/multiturn_val")
    rankings = {
        row["session_id"]: [list(shapes.gallery or ())[:10] for _ in row["turns"]] for row in shapes.rows()
    }
    with pytest.raises(CallError, match=r"turns of shapes/multiturn_val have no targets of their own\. Fix"):
        scored(rankings, shapes, metrics=["turn_recall@5"])


def test_qrels_and_triplets_name_the_turns_target(dialogues: Benchmark, tmp_path: Path) -> None:
    lines = [line.split() for line in trec_qrels(dialogues).decode().splitlines()]
    turns = [turn for row in dialogues.rows() for turn in row["turns"]]
    assert [line[2] for line in lines] == [turn["target_image_id"] for turn in turns]
    found = cir_datasets.triplets("cirr/dialogues_val", data_dir=tmp_path, verification_mode="no_checks")
    assert [triplet.target_image_id for triplet in found] == [turn["target_image_id"] for turn in turns]
    assert [triplet.query_id for triplet in found] == [line[0] for line in lines]


def test_the_targets_of_turns_are_in_the_data_hash(dialogues: Benchmark) -> None:
    rows = dialogues.rows()
    rows[0]["turns"][0]["target_image_id"] = rows[0]["turns"][2]["target_image_id"]
    assert Benchmark.from_rows(dialogues.spec, rows, dialogues.gallery).data_hash != dialogues.data_hash
