"""Rank files over the publishers' real annotations: perfect and random ones, there and back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cir_datasets
import submissions
from cir_datasets.rows.benchmark import Benchmark
from submissions import Method, RankFile, WithheldError, make_rank_file

pytestmark = pytest.mark.real_data

SCORED = ["cirr/val", "fashioniq/dress_val", "circo/val"]


@pytest.fixture(scope="module", params=SCORED)
def benchmark(request: pytest.FixtureRequest, data_home: Path) -> Benchmark:
    return cir_datasets.load(request.param)


def pool(benchmark: Benchmark) -> list[str]:
    """The gallery; where it is not available (CIRCO) the known ids and made-up ones, as many as it has."""
    if benchmark.gallery is not None:
        return list(benchmark.gallery)
    known = {
        image for row in benchmark.rows() for image in [row["reference_image_id"], *row["positive_image_ids"]]
    }
    wanted = benchmark.spec.config.gallery
    assert wanted is not None
    made_up = (f"{number:012d}" for number in range(10**6, 10**6 + 2 * wanted))
    return [*sorted(known), *(image for image in made_up if image not in known)][:wanted]


def rank_file(benchmark: Benchmark, rankings: dict[str, list[str]], subsets: dict[str, list[str]]) -> bytes:
    return RankFile(
        benchmark=benchmark.id,
        benchmark_version=benchmark.version,
        method=Method(name="A simple ranker", zero_shot=True),
        rankings=rankings,
        subset_rankings=subsets if benchmark.spec.config.subset else None,
    ).to_json()


def ordered(benchmark: Benchmark, order: Any) -> bytes:
    """A rank file from a function that orders a query's candidates."""
    rankings, subsets = {}, {}
    for row in benchmark.rows():
        removed = {row["reference_image_id"]} if benchmark.excludes_reference else set()
        rankings[row["query_id"]] = order(row, removed, 50)
        members = [image for image in row["subset_image_ids"] if image != row["reference_image_id"]]
        ranked = [image for image in order(row, removed, None, members) if image in set(members)]
        subsets[row["query_id"]] = ranked[:3]
    return rank_file(benchmark, rankings, subsets)


def within_three_sigma(share: float, chance: float, n: int) -> bool:
    """Whether a share of n queries is where chance puts it; one more for the grain of counts."""
    return abs(share - chance) <= 3 * math.sqrt(chance * (1 - chance) / n) + 1 / n


def check_chance(report: Any, benchmark: Benchmark) -> None:
    gallery = benchmark.spec.config.gallery
    assert gallery is not None
    candidates = gallery - (1 if benchmark.excludes_reference else 0)
    checked = 0
    for metric, value in report.metrics.items():
        name, _, k = metric.partition("@")
        if name == "recall":
            assert within_three_sigma(value, int(k) / candidates, report.n), (metric, value)
        elif name == "recall_subset":
            assert within_three_sigma(value, int(k) / 5, report.n), (metric, value)
        else:
            assert value <= 0.01, (metric, value)
        checked += 1
    assert checked == len(benchmark.spec.metrics)


def test_a_perfect_file_scores_one(benchmark: Benchmark) -> None:
    images = pool(benchmark)

    def order(row: Any, removed: set[str], k: int | None, among: list[str] | None = None) -> list[str]:
        first = [
            row["target_image_id"],
            *(p for p in row["positive_image_ids"] if p != row["target_image_id"]),
        ]
        rest = [image for image in (among or images[:120]) if image not in {*first, *removed}]
        return [*first, *rest][:k]

    content = ordered(benchmark, order)
    report = submissions.validate(content, benchmark)
    assert report.ok
    assert [f.code for f in report.findings] == (
        [] if benchmark.gallery is not None else ["gallery-unavailable"]
    )
    scored = submissions.score(content, benchmark)
    assert scored.n == benchmark.spec.config.queries == len(benchmark)
    assert set(scored.metrics.values()) == {1.0}
    assert scored.main == 1.0


def test_a_random_order_is_chance(benchmark: Benchmark) -> None:
    if benchmark.gallery is not None:
        content = make_rank_file(benchmark, "random").to_json()
        assert submissions.validate(content, benchmark).findings == ()
    else:
        images = np.array(pool(benchmark))
        generator = np.random.default_rng(7)

        def order(row: Any, removed: set[str], k: int | None, among: list[str] | None = None) -> list[str]:
            return list(generator.choice(images, 50, replace=False)) if among is None else []

        content = ordered(benchmark, order)
    check_chance(submissions.score(content, benchmark), benchmark)


def test_cirr_test1_goes_to_the_server_and_back(data_home: Path, tmp_path: Path) -> None:
    native = submissions.write(make_rank_file("cirr/test1", "random"), tmp_path / "random.json")
    assert submissions.validate(native).findings == ()
    with pytest.raises(WithheldError, match=r"Fix: cir convert .* --to cirr-server --benchmark cirr/test1"):
        submissions.score(native)
    files = {made.part: made.content for made in submissions.convert([native], "cirr-server")}
    for part, depth in (("recall", 50), ("recall_subset", 3)):
        document = json.loads(files[part])
        assert len(files[part]) < 5_000_000
        assert (document.pop("version"), document.pop("metric")) == ("rc2", part)
        assert len(document) == 4148
        assert {len(names) for names in document.values()} == {depth}
        assert submissions.validate(files[part], "cirr/test1").ok
    (joined,) = submissions.convert(list(files.values()), "native", benchmark="cirr/test1", name="Random")
    again, first = submissions.read(joined.content), submissions.read(native)
    assert (again.rankings, again.subset_rankings) == (first.rankings, first.subset_rankings)


def test_circo_test_goes_to_the_server_and_back(data_home: Path) -> None:
    benchmark = cir_datasets.load("circo/test")
    images = pool(benchmark)
    rankings = dict.fromkeys(benchmark.query_ids, images[:50])
    content = rank_file(benchmark, rankings, {})
    (made,) = submissions.convert([content], "circo-server")
    document = json.loads(made.content)
    assert list(document) == [str(number) for number in range(800)]
    assert document["0"] == [int(image) for image in images[:50]]
    (native,) = submissions.convert([made.content], "native", benchmark="circo/test")
    again = submissions.read(native.content)
    assert again.rankings == rankings
    with pytest.raises(WithheldError, match="The CIRCO server scores it"):
        submissions.score(made.content, "circo/test")


def test_the_fashioniq_suite_is_scored(data_home: Path) -> None:
    members = [f"fashioniq/{category}_val" for category in ("dress", "shirt", "toptee")]
    bundle = submissions.RankBundle(
        "fashioniq/val", tuple(make_rank_file(member, "random") for member in members)
    )
    report = submissions.score(bundle.to_json())
    assert report.n == 2017 + 2038 + 1961
    means = [run.metrics["recall@10"] for run in report.runs]
    assert report.metrics["recall@10"] == pytest.approx(sum(means) / 3, abs=1e-15)
    chance = sum(10 / size for size in (3817, 6346, 5373)) / 3
    assert within_three_sigma(report.metrics["recall@10"], chance, report.n)
