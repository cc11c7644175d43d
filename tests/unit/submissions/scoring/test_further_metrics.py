"""Metrics beside the board's: those of the card (CIRR's Table 5) and those that a caller asks for."""

from __future__ import annotations

import json
from typing import Any

import benchmark_world as worlds
import pytest
from benchmark_world import reports
from benchmark_world.reports import report_of, rows
from says import refusal

import cir_datasets
import cir_datasets.registry.suites
import submissions
from cir_datasets.registry import card
from cir_metrics.errors import CallError, UnknownNameError
from submissions.report import full_report


def test_table_5_of_the_invented_cirr_equals_the_one_worked_by_hand() -> None:
    report = full_report(reports.scored("cirr_like"))
    ranks = [rank for rank, _ in reports.CIRR_RANKS]
    subset = [rank for _, rank in reports.CIRR_RANKS]
    for name, given_ranks in (("map", ranks), ("map_subset", subset)):
        for k in (1, 5, 10, 50) if name == "map" else (1, 2, 3):
            value = sum(1 / rank for rank in given_ranks if rank is not None and rank <= k) / 6
            assert report.extra[f"{name}@{k}"] == pytest.approx(value, abs=1e-15)
    assert list(report.extra) == list(card("cirr").report.metrics)
    assert report.score.signatures["map@5"].key == report.score.signatures["recall@5"].key.replace(
        "recall@5:1", "map@5:1"
    )


def test_what_the_report_derives_is_what_scoring_computes() -> None:
    names_of = card("cirr").report.metrics
    benchmark = worlds.cirr()
    document = reports.cirr_document(benchmark)
    asked = submissions.score(json.dumps(document).encode(), benchmark, metrics=names_of)
    derived = full_report(reports.scored("cirr_like"))
    assert asked.extra == pytest.approx(dict(derived.extra), abs=1e-15)
    assert full_report(asked).extra == asked.extra


def test_one_of_cirrs_two_files_has_its_own_half_of_table_5() -> None:
    benchmark = worlds.cirr()
    document = reports.cirr_document(benchmark)
    subset = {"version": "rc2", "metric": "recall_subset", **document["subset_rankings"]}
    report = report_of(subset, benchmark)
    assert list(report.extra) == ["map_subset@1", "map_subset@2", "map_subset@3"]
    assert report.notes[-1] == (
        "Not computed, because the file holds no rankings for it: map@1, map@5, map@10, map@50."
    )


def test_further_metrics_have_values_signatures_and_groups() -> None:
    rank_file = submissions.make_rank_file("shapes/val", "image_text_sum_pixels")
    asked = ("recall@20", "pnr_map@10:released_code", "pnr_map@10:equation", "recall@10", "mean_rank")
    score = submissions.score(rank_file, metrics=asked, per_query=True)
    ranks = ("mean_rank", "median_rank", "censored")
    assert list(score.extra) == ["recall@20", "pnr_map@10:released_code", *ranks]
    assert list(score.metrics) == list(cir_datasets.spec("shapes/val").metrics)
    assert "metric:1:released_code" in score.signature_text("pnr_map@10:released_code")
    assert score.signature_key("pnr_map@10:released_code") != score.signature_key("pnr_map@10")
    assert score.metrics["recall@10"] <= score.extra["recall@20"] <= score.metrics["recall@50"]
    mean = sum(row["recall@20"] for row in score.per_query) / 300
    assert mean == pytest.approx(score.extra["recall@20"])
    report = full_report(score)
    assert rows(report, "by_aspect")["micro"]["pnr_map@10:released_code"] == pytest.approx(
        score.extra["pnr_map@10:released_code"]
    )
    assert report.floors["random"]["recall@20"] == pytest.approx(20 / 3939)
    assert json.loads(report.render("json"))["extra"] == dict(score.extra)
    assert score.to_dict()["extra"] == dict(score.extra)


def test_a_turn_that_is_asked_for_is_the_only_one() -> None:
    benchmark = worlds.circled()
    content = json.dumps(worlds.circled_document(benchmark)).encode()
    asked = ["hits@8@turn2", "hits@08@turn02", "hits@10@turn1", "hits@10", "hits@10@turn3"]
    score = submissions.score(content, benchmark, metrics=asked)
    # Targets stand at ranks 8, 9 and 10 at every turn; the board shows Hits@10 anyway.
    assert score.extra == {"hits@8@turn2": pytest.approx(1 / 3)}
    assert list(full_report(score).floors["random"])[-1] == "hits@8@turn2"
    every = submissions.score(content, benchmark, metrics=["hits@8", "hits@8@turn2"])
    assert list(every.extra) == ["hits@8@turn1", "hits@8@turn2", "hits@8@turn3"]
    for turn in (0, 4):
        with refusal(
            f"metric hits@8@turn{turn} ... circled/cirr_val has 3 turns. Fix: ask for a turn", CallError
        ):
            submissions.score(content, benchmark, metrics=[f"hits@8@turn{turn}"])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("recall@20", r"metrics is the string 'recall@20'\. Fix: pass a list, \['recall@20'\]\."),
        (20, r"metrics is of type int\. Fix: pass a list such as \['recall@20'\]\."),
        ([20], r"metrics holds 20\. Fix: pass names such as 'recall@20'\."),
    ],
)
def test_what_is_not_a_list_of_names_is_refused(asked: Any, message: str) -> None:
    benchmark = worlds.cirr()
    with pytest.raises(CallError, match=message):
        submissions.score(json.dumps(worlds.cirr_document(benchmark)).encode(), benchmark, metrics=asked)


def test_further_metrics_of_a_suite_are_averaged_as_its_own() -> None:
    members = [worlds.fashioniq("dress", queries=2), worlds.fashioniq("shirt"), worlds.fashioniq("toptee")]
    document = worlds.fashioniq_bundle(members)
    gallery = list(members[0].gallery or ())
    for query in members[0].query_ids:  # the two targets stand at ranks 12 and 13
        document["runs"][0]["rankings"][query] = gallery[40:50] + gallery[:40]
    by_id = {member.id: member for member in members}
    score = submissions.score(json.dumps(document).encode(), by_id, metrics=["recall@12", "mean_rank"])
    assert score.extra["recall@12"] == pytest.approx((1 / 2 + 1 + 1) / 3)
    assert score.extra["recall@12@micro"] == pytest.approx(9 / 10)
    assert "median_rank@micro" not in score.extra
    random = full_report(score).floors["random"]
    assert (random["recall@12"], random["recall@12@micro"]) == pytest.approx((12 / 80, 12 / 80))
    (table,) = (table for table in full_report(score).tables() if table.title == "By benchmark")
    place = table.columns.index("recall@12 random")
    assert [row[place].value for row in table.rows] == pytest.approx([12 / 80] * 5)
    assert score.signature_key("recall@12@micro").startswith("suite:fashioniq/val#1|mean:micro + ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("recall@51", "metric recall@51: ... cuts every ranking to 50 images ... ask for a cutoff of at"),
        ("recall_subset@4", "metric recall_subset@4: ... 3 images ... ask for a cutoff of at most 3."),
        ("hits@10", "metric hits@10: a metric of sessions, and cirr/val has queries. Fix: leave it out."),
        ("map@5:x", "metric 'map@5:x': variant='x': map_at_k has no such variant ... use one of 'equation'."),
        ("map@5:", "metric 'map@5:': variant='': map_at_k has no such variant ... use one of 'equation'."),
        ("recall@0", "metric 'recall@0': k=0; a cutoff is 1 or more. Fix: ask for recall@1 or more."),
        ("recall", "metric 'recall': names no cutoff. Fix: write 'recall@K', such as 'recall@1'."),
    ],
)
def test_a_metric_that_the_file_cannot_tell_is_refused(name: str, text: str) -> None:
    with refusal(text, CallError):
        report_of(worlds.cirr_document(worlds.cirr()), worlds.cirr(), metrics=[name])


def test_metrics_of_the_other_kind_of_benchmark_are_refused() -> None:
    document = worlds.cirr_document(worlds.cirr())
    with refusal("metric recall@5 ... circled/cirr_val has sessions. Fix: leave it out", CallError):
        report_of(worlds.circled_document(worlds.circled()), worlds.circled(), metrics=["recall@5"])
    with refusal(
        "metric recall_subset@1: needs a ranking of each query's subset ... leave it out", CallError
    ):
        report_of(worlds.circo_document(worlds.circo()), worlds.circo(), metrics=["recall_subset@1"])
    with refusal("metric recall@7: needs rankings of the gallery ... leave it out", CallError):
        subset = {"version": "rc2", "metric": "recall_subset", **document["subset_rankings"]}
        report_of(subset, worlds.cirr(), metrics=["recall@7"])
    with pytest.raises(UnknownNameError, match=r"no metric is printed as 'recal@5'"):
        report_of(document, worlds.cirr(), metrics=["recal@5"])
