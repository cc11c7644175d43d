"""Intervals of a score: what is drawn, what a suite's mean of draws is, and what has no interval."""

from __future__ import annotations

import dataclasses
import json
import random
from typing import Any

import benchmark_world as worlds
import numpy as np
import pytest
from benchmark_world import score

from cir_metrics.errors import CallError, InputError
from cir_metrics.resampling import bootstrap_means, bootstrap_medians, percentile_interval
from submissions.report import full_report
from submissions.scoring.intervals import Interval, intervals
from submissions.scoring.score_report import ScoreReport

CIRR = worlds.cirr(queries=40)
CIRCLED = worlds.circled()


def shuffled(document: dict[str, Any], seed: int) -> dict[str, Any]:
    """The same file with the places of its rankings shuffled."""
    chance = random.Random(seed)
    for part in ("rankings", "subset_rankings"):
        for ranking in document.get(part, {}).values():
            for each in ranking if isinstance(ranking[0], list) else [ranking]:
                chance.shuffle(each)
    return document


def cirr_report() -> ScoreReport:
    return score(shuffled(worlds.cirr_document(CIRR), 1), CIRR)


def suite_report() -> ScoreReport:
    members = [worlds.fashioniq(name, queries=n) for name, n in (("dress", 20), ("shirt", 7), ("toptee", 9))]
    bundle = worlds.fashioniq_bundle(members)
    bundle["runs"] = [
        shuffled({**run, "rankings": {q: [*r] for q, r in run["rankings"].items()}}, 3)
        for run in bundle["runs"]
    ]
    return score(bundle, {member.id: member for member in members})


def check(found: Interval, drawn: Any, level: float = 0.95) -> None:
    """The interval is that of the draws."""
    ends = np.array(percentile_interval(np.asarray(drawn), level))
    assert np.array([found.low, found.high]) == pytest.approx(ends, abs=1e-12)


def test_the_interval_is_that_of_the_values_a_query() -> None:
    report = cirr_report()
    found = intervals(report, draws=500, seed=4, level=0.9)
    for metric, values in report.evidence.values.items():
        check(found.values[metric], bootstrap_means(values, draws=500, seed=4, key="cirr/val"), 0.9)


def test_the_main_metric_is_averaged_within_each_draw() -> None:
    report = cirr_report()
    found = intervals(report, draws=500)
    further = CIRR.spec.card.report.metrics
    assert list(found.values) == [*report.metrics, "mean(recall@5, recall_subset@1)", *further]
    one, other = (
        bootstrap_means(report.evidence.values[name], draws=500, key="cirr/val")
        for name in ("recall@5", "recall_subset@1")
    )
    check(found.values[report.main_metric], (one + other) / 2)


def test_a_suite_draws_its_members_apart_and_averages_the_draws() -> None:
    report = suite_report()
    found = intervals(report, draws=400)
    drawn = {}
    for run in report.runs:
        drawn[run.benchmark] = bootstrap_means(run.evidence.values["recall@10"], draws=400, key=run.benchmark)
    macro = sum(drawn.values()) / 3
    sizes = {run.benchmark: run.n for run in report.runs}
    micro = sum(sizes[name] * each for name, each in drawn.items()) / sum(sizes.values())
    for metric, means in (("recall@10", macro), ("recall@10@micro", micro)):
        check(found.values[metric], means)
    assert set(found.values) == {*report.metrics, "mean(recall@10, recall@50)"}


def test_sessions_are_drawn_whole() -> None:
    document = shuffled(worlds.circled_document(CIRCLED, 30), 2)
    found = intervals(score(document, CIRCLED), draws=50)
    assert found.unit == "sessions"
    assert {"hits@10@turn3", "final_recall@10", "hits_auc@10"} <= set(found.values)


def test_the_median_rank_is_drawn_too_and_a_count_is_not() -> None:
    report = cirr_report()
    ranks = np.arange(1.0, 41.0)
    with_ranks = dataclasses.replace(
        report,
        metrics={**report.metrics, "mean_rank": 20.5, "median_rank": 20.5, "censored": 0},
        evidence=dataclasses.replace(report.evidence, values={**report.evidence.values, "mean_rank": ranks}),
    )
    found = intervals(with_ranks, draws=200)
    check(found.values["median_rank"], bootstrap_medians(ranks, draws=200, key="cirr/val"))
    assert "censored" not in found.values


def test_what_stands_beside_the_boards_metrics_has_an_interval_too() -> None:
    report = score(shuffled(worlds.cirr_document(CIRR), 1), CIRR, metrics=["mean_rank", "recall@20"])
    found = intervals(report, draws=200)
    ranks = report.evidence.values["mean_rank"]
    check(found.values["median_rank"], bootstrap_medians(ranks, draws=200, key="cirr/val"))
    earned = np.where(ranks <= 5, 1 / ranks, 0)
    check(found.values["map@5"], bootstrap_means(earned, draws=200, key="cirr/val"))
    table = full_report(report, found).tables()[0]
    assert [row[0].text for row in table.rows if row[2].text == "-"] == ["censored"]


def test_intervals_record_how_they_were_drawn() -> None:
    document = intervals(cirr_report(), draws=20, seed=9).to_dict()
    assert list(document["metrics"])[-1] == "map_subset@3"
    drawn = {"method": "percentile bootstrap", "resampled": "queries", "draws": 20, "seed": 9, "level": 0.95}
    assert drawn.items() <= document.items()
    assert json.loads(json.dumps(document)) == document


def test_a_report_without_values_is_refused() -> None:
    bare = dataclasses.replace(cirr_report(), evidence=None)
    with pytest.raises(CallError, match=r"run\.json: the report holds no values per query\. Fix: take it"):
        intervals(bare)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 0}, r"draws=0; draws are counted, a whole number from 1 on"),
        ({"draws": 1.5}, r"draws=1\.5; draws are counted, a whole number from 1 on\. Fix: use 10000\."),
        ({"seed": 1.5}, r"seed=1\.5; a seed is a whole number from 0 on\. Fix: pass another\."),
        ({"seed": -1}, r"seed=-1; a seed is a whole number from 0 on"),
        ({"level": "x"}, r"level='x'; a level is above 0 and below 1\. Fix: use 0\.95\."),
    ],
)
def test_numbers_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        intervals(cirr_report(), **options)
