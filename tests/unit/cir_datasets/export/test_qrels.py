"""TREC qrels: trec_eval's success@K on our run and our judgements is Recall@K here."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import benchmark_world as worlds
import numpy as np
import pytest
import pytrec_eval
from typer.testing import CliRunner

import submissions
from cir_datasets import load
from cir_datasets.errors import DatasetError
from cir_datasets.export.ground_truth import trec_qrels
from cir_datasets.registry import spec
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics import evaluate_single_turn
from cir_metrics.errors import CallError
from cir_metrics.inputs import references
from leaderboard.cli import build


def trec_eval(run: bytes, qrels: bytes, measures: set[str]) -> dict[str, float]:
    judged = pytrec_eval.parse_qrel(io.StringIO(qrels.decode()))
    found = pytrec_eval.RelevanceEvaluator(judged, measures).evaluate(
        pytrec_eval.parse_run(io.StringIO(run.decode()))
    )
    # Queries without any line in the run are not averaged over by pytrec_eval: there are none here.
    assert len(found) == len(judged)
    return {
        name: float(np.mean([row[name] for row in found.values()])) for name in next(iter(found.values()))
    }


def test_success_is_our_recall() -> None:
    cirr = worlds.cirr(gallery=120, queries=60)
    document, shuffle = worlds.cirr_document(cirr), random.Random(7)
    for row in cirr.rows():
        others = [image for image in cirr.gallery or () if image != row["reference_image_id"]]
        document["rankings"][row["query_id"]] = shuffle.sample(others, 50)
    content = json.dumps(document).encode()
    (run,) = submissions.convert([content], "trec", benchmark=cirr)
    ours = submissions.score(content, cirr).metrics
    theirs = trec_eval(run.content, trec_qrels(cirr), {"success.1,5,10,50"})
    assert 0.2 < ours["recall@50"] < 0.8
    for k in (1, 5, 10, 50):
        assert theirs[f"success_{k}"] == pytest.approx(ours[f"recall@{k}"], abs=1e-12)


@pytest.mark.slow
def test_with_several_positives_map_is_ours_where_k_reaches_all() -> None:
    made = submissions.make_rank_file("shapes/val", "image_text_sum_pixels")
    (run,) = submissions.convert([made.to_json()], "trec")
    benchmark = load("shapes/val")
    most = max(map(len, benchmark.positives))
    assert 1 < most <= 50
    theirs = trec_eval(run.content, trec_qrels(benchmark), {"map_cut.50"})
    rankings = [made.rankings[query] for query in benchmark.query_ids]
    ours = evaluate_single_turn(["map@50"], rankings, references(benchmark.rows())).values
    assert theirs["map_cut_50"] == pytest.approx(ours["map@50"], abs=1e-12)


def test_with_several_positives_success_counts_any_of_them_and_recall_the_target() -> None:
    made = submissions.make_rank_file("shapes/val", "image_text_sum_pixels")
    (run,) = submissions.convert([made.to_json()], "trec")
    benchmark = load("shapes/val")
    theirs = trec_eval(run.content, trec_qrels(benchmark), {"success.10"})
    rankings = [made.rankings[query] for query in benchmark.query_ids]
    ours = evaluate_single_turn(["recall@10"], rankings, references(benchmark.rows())).values
    any_positive = [
        not set(positives).isdisjoint(ranking[:10])
        for positives, ranking in zip(benchmark.positives, rankings, strict=True)
    ]
    assert theirs["success_10"] == pytest.approx(np.mean(any_positive), abs=1e-12)
    assert theirs["success_10"] > ours["recall@10"]


def test_hard_negatives_become_lines_of_relevance_0_unless_they_are_positives() -> None:
    rows = [
        worlds.query("q1", "r", "a", positive_image_ids=["a", "b"], negative_image_ids=["n", "m"]),
        worlds.query("q0", "r", "c", negative_image_ids=["c", "n"]),
    ]
    benchmark = Benchmark.from_rows(spec("cirr/val"), rows, None)
    # A positive that is listed as hard negative, too, stays a positive.
    assert trec_qrels(benchmark).decode() == ("q1 0 a 1\nq1 0 b 1\nq1 0 n 0\nq1 0 m 0\nq0 0 c 1\nq0 0 n 0\n")
    assert trec_qrels(benchmark, subset=True).decode() == "q1#subset 0 a 1\nq0#subset 0 c 1\n"


def test_sessions_have_a_block_a_turn() -> None:
    assert trec_qrels(worlds.circled()).decode().splitlines()[:3] == [
        "s0#1 0 im7 1",
        "s0#2 0 im7 1",
        "s1#1 0 im8 1",
    ]


def test_turns_are_judged_as_we_score_them() -> None:
    made = submissions.make_rank_file("shapes/multiturn_val", "image_only_pixels")
    (run,) = submissions.convert([made.to_json()], "trec")
    benchmark = load("shapes/multiturn_val")
    judged = pytrec_eval.parse_qrel(io.StringIO(trec_qrels(benchmark).decode()))
    found = pytrec_eval.RelevanceEvaluator(judged, {"success.10"}).evaluate(
        pytrec_eval.parse_run(io.StringIO(run.content.decode()))
    )
    last = [
        found[f"{session}#{turns}"]["success_10"]
        for session, turns in zip(benchmark.query_ids, benchmark.column("num_turns"), strict=True)
    ]
    assert submissions.score(made).metrics["final_recall@10"] == pytest.approx(np.mean(last), abs=1e-12)


def test_subset_rankings_are_judged_apart() -> None:
    cirr = worlds.cirr()
    document = worlds.perfect_cirr(cirr)
    document["subset_rankings"]["100"].reverse()
    (run,) = submissions.convert([json.dumps(document).encode()], "trec", benchmark=cirr)
    ours = submissions.score(json.dumps(document).encode(), cirr).metrics
    theirs = trec_eval(run.content, trec_qrels(cirr, subset=True), {"success.1,2,3"})
    assert ours["recall_subset@1"] == pytest.approx(5 / 6)
    assert {k: theirs[f"success_{k}"] for k in (1, 2, 3)} == pytest.approx(
        {k: ours[f"recall_subset@{k}"] for k in (1, 2, 3)}, abs=1e-12
    )


def test_withheld_ground_truth_absent_subsets_and_ids_with_blanks_are_refused() -> None:
    with pytest.raises(CallError, match=r"the ground truth of cirr/test1 is withheld by its publisher"):
        trec_qrels(worlds.cirr("test1"))
    with pytest.raises(CallError, match=r"circo/val has no subsets\. Fix: drop --subset\."):
        trec_qrels(worlds.circo(), subset=True)
    blank = Benchmark.from_rows(spec("cirr/val"), [worlds.query("q", "r", "a b")], None)
    with pytest.raises(DatasetError, match=r"query 'q', image 'a b': an id holds a blank"):
        trec_qrels(blank)


def test_the_command_writes_what_the_function_gives(tmp_path: Path) -> None:
    out = tmp_path / "shapes.qrels"
    done = CliRunner().invoke(build(), ["datasets", "qrels", "shapes/val", "--out", str(out)])
    assert (done.exit_code, done.output) == (0, f"{out}\n")
    assert out.read_bytes() == trec_qrels(load("shapes/val"))
    done = CliRunner().invoke(
        build(), ["datasets", "qrels", "shapes/val", "--out", str(tmp_path / "no" / "x")]
    )
    assert done.exit_code == 1
    assert "cannot be written: No such file or directory. Fix: choose another --out." in str(done.exception)
