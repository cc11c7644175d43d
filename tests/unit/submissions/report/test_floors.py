"""Floors beside scores, and what cards say of reports: numbers are made anew, misfits are refused."""

from __future__ import annotations

import re
from typing import Any

import benchmark_world as worlds
import pytest
from benchmark_world.reports import report_of
from pydantic import ValidationError

import cir_datasets
import submissions
from cir_datasets.registry import card, names
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.catalogue import METRICS, parse_metric
from submissions.report import full_report


@pytest.mark.parametrize("config", ["val", "multiturn_val"])
@pytest.mark.parametrize("method", ["image_only", "text_only"])
def test_the_recorded_floors_are_what_the_methods_score(config: str, method: str) -> None:
    recorded = card("shapes").floors[config].methods()[method]
    assert recorded.command == (
        f"cir run --benchmark shapes/{config} --method {method}_pixels --out run.json"
        " && cir score run.json --json"
    )
    score = submissions.score(submissions.make_rank_file(f"shapes/{config}", f"{method}_pixels"))
    assert dict(recorded.metrics) == pytest.approx(score.metrics, abs=1e-12)
    assert list(full_report(score).floors) == ["random", "image_only", "text_only"]


@pytest.mark.parametrize(
    ("hits", "noted"),
    [(0, True), (9, True), (10, False), (19, False), (30, False)],
    ids=["none", "few", "not_few_enough", "chance", "all"],
)
def test_rankings_below_chance_are_noted_first(hits: int, noted: bool) -> None:
    """30 queries, chance 50 of 80: `scipy.stats.binom.cdf` is 0.00031 with 9 hits and 0.00114 with 10."""
    benchmark = worlds.fashioniq("dress", queries=30)
    (document,) = worlds.fashioniq_bundle([benchmark])["runs"]
    targets = zip(benchmark.query_ids, benchmark.column("target_image_id"), strict=True)
    for number, (query, target) in enumerate(targets):
        others = [image for image in benchmark.gallery or () if image != target]
        document["rankings"][query] = [*others[:49], target if number < hits else others[49]]
    report = report_of(document, benchmark)
    assert report.notes[0].startswith("below chance: recall@50 is ") == noted
    assert ("of a random order 62.50" in report.render()) == noted


def test_floors_of_other_rows_are_left_out() -> None:
    benchmark = cir_datasets.load("shapes/val")
    fewer = Benchmark.from_rows(benchmark.spec, benchmark.rows()[:40], benchmark.gallery)
    report = full_report(submissions.score(submissions.make_rank_file(fewer, "random"), fewer))
    assert list(report.floors) == ["random"]
    assert report.notes[1] == (
        "The baselines recorded for shapes/val are of other rows or another gallery and are left out."
    )


def test_without_the_size_of_the_gallery_there_is_no_random_floor_and_the_report_says_why() -> None:
    benchmark = worlds.circo(gallery=None)
    config = benchmark.spec.config.model_copy(update={"gallery": None})
    own = benchmark.spec.card.model_copy(update={"configs": {"val": config}})
    unknown = Benchmark.from_rows(type(benchmark.spec)(own, "val"), benchmark.rows(), None)
    report = report_of(worlds.circo_document(unknown), unknown)
    assert dict(report.floors) == {}
    assert report.notes[0] == "No chance values: the size of the gallery is not known."
    assert report.tables()[0].columns == ("metric", "score")
    assert report.to_dict()["counts"]["gallery"] is None
    listed = report_of(worlds.circo_document(benchmark), benchmark)
    assert listed.notes[0] == "random: expected of a random order of 123,403 images (the card's count)."


@pytest.mark.parametrize("name", names())
def test_what_a_cards_report_names_can_be_computed(name: str) -> None:
    report = card(name).report
    for metric in (*report.metrics, *report.by_aspect):
        module, _ = parse_metric(metric)
        assert "single_turn" in METRICS[module].protocols
    for config, floors in card(name).floors.items():
        listed = full_report(submissions.score(submissions.make_rank_file(f"{name}/{config}", "random")))
        for floor in floors.methods().values():
            assert list(floor.metrics) == list(listed.score.metrics)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"by_aspect": ["map@10"]}, "by_aspect and aspect_names go together"),
        ({"by_aspect": ["map@7"], "aspect_names": {"a": "A"}}, "report.by_aspect names 'map@7', which"),
    ],
)
def test_a_card_whose_report_does_not_fit_is_refused(changes: dict[str, Any], text: str) -> None:
    document = card("cirr").model_dump() | {"report": changes}
    with pytest.raises(ValidationError, match=re.escape(text)):
        type(card("cirr")).model_validate(document)


def test_floors_of_no_configuration_are_refused() -> None:
    document = card("shapes").model_dump()
    document["floors"]["vale"] = document["floors"]["val"]
    with pytest.raises(ValidationError, match="floors are recorded for 'vale', which is not a configuration"):
        type(card("shapes")).model_validate(document)
