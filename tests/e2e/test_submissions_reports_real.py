"""Reports on the publishers' real annotations: CIRCO's nine aspects, CIRR's Table 5."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cir_datasets
import submissions
from cir_datasets.rows.benchmark import Benchmark
from submissions import Method, RankFile
from submissions.report import full_report

pytestmark = pytest.mark.real_data

ASPECT_COUNTS = {
    "cardinality": 37,
    "addition": 80,
    "negation": 21,
    "direct_addressing": 119,
    "compare_change": 86,
    "comparative_statement": 50,
    "statement_with_conjunction": 164,
    "spatial_relations_background": 100,
    "viewpoint": 54,
}
"""Counted in annotations/val.json: how often each word stands in `semantic_aspects`."""


def cirr_file(benchmark: Benchmark, ranks: dict[str, tuple[int, int]]) -> RankFile:
    """The target at a rank of the gallery and at one of the subset, (1, 1) where `ranks` names none."""
    gallery = list(benchmark.gallery or ())
    rankings, subsets = {}, {}
    for row in benchmark.rows():
        query, held = row["query_id"], (row["target_image_id"], row["reference_image_id"])
        rank, subset_rank = ranks.get(query, (1, 1))
        ranking = [image for image in gallery[:55] if image not in held]
        ranking.insert(rank - 1, held[0])
        subset = [image for image in row["subset_image_ids"] if image not in held]
        subset.insert(subset_rank - 1, held[0])
        rankings[query], subsets[query] = ranking[:50], subset[:3]
    return RankFile(
        benchmark=benchmark.id,
        benchmark_version=benchmark.version,
        method=Method(name="made"),
        rankings=rankings,
        subset_rankings=subsets,
    )


def test_circo_has_nine_aspects_whose_counts_are_the_annotations(data_home: Path) -> None:
    benchmark = cir_datasets.load("circo/val")
    with (data_home / "CIRCO" / "annotations" / "val.json").open() as file:
        annotations = json.load(file)
    rankings = {}
    for number, query in enumerate(annotations):
        others = [f"{image:012d}" for image in range(1, 51)]
        if number % 2 == 0:  # the first of the positives at rank 2
            others.insert(1, f"{query['gt_img_ids'][0]:012d}")
        rankings[str(query["id"])] = others[:50]
    file_of = RankFile(
        benchmark="circo/val",
        benchmark_version=benchmark.version,
        method=Method(name="made"),
        rankings=rankings,
    )
    score = submissions.score(file_of)
    found = full_report(score).groupings["by_aspect"]
    assert {group.key: group.n for group in found.groups} == ASPECT_COUNTS
    for group in found.groups:
        slow = [
            (0.5 / min(len(query["gt_img_ids"]), 10)) if number % 2 == 0 else 0.0
            for number, query in enumerate(annotations)
            if group.key in query["semantic_aspects"]
        ]
        assert group.values["map@10"] == pytest.approx(sum(slow) / len(slow), abs=1e-12)
    macro, micro = found.means
    assert micro.values["map@10"] == pytest.approx(score.metrics["map@10"], abs=1e-12)
    values = [group.values["map@10"] for group in found.groups]
    assert macro.values["map@10"] == pytest.approx(sum(v for v in values if v is not None) / 9, abs=1e-12)


def test_table_5_by_hand_where_four_queries_are_not_perfect(data_home: Path) -> None:
    benchmark = cir_datasets.load("cirr/val")
    first, second, third, fourth = benchmark.query_ids[:4]
    ranks = {first: (2, 2), second: (7, 3), third: (40, 1), fourth: (51, 4)}
    report = full_report(submissions.score(cirr_file(benchmark, ranks), benchmark))
    n = 4181
    for name, sum_of_four in {
        "map@1": 0,
        "map@5": 1 / 2,
        "map@10": 1 / 2 + 1 / 7,
        "map@50": 1 / 2 + 1 / 7 + 1 / 40,
        "map_subset@1": 1,
        "map_subset@2": 1 / 2 + 1,
        "map_subset@3": 1 / 2 + 1 / 3 + 1,
    }.items():
        assert report.extra[name] == pytest.approx((n - 4 + sum_of_four) / n, abs=1e-12)
