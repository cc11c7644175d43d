"""Both ways through validation and scoring agree: all answers at once, and each answer on its own."""

from __future__ import annotations

import copy
from typing import Any

import benchmark_world as worlds
import numpy as np
import pytest
from benchmark_world import rank_file_of
from hypothesis import given
from hypothesis import strategies as st

from cir_datasets.registry import spec
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics import evaluate_multi_turn, evaluate_single_turn
from cir_metrics.evaluation import mark
from cir_metrics.inputs import references
from submissions import validation
from submissions.formats.native import UncheckedFile
from submissions.rank_file.benchmarks import queries
from submissions.rank_file.columns import Columns
from submissions.rank_file.findings import Finding, Findings
from submissions.rank_file.model import Method
from submissions.scoring import score

CIRR = worlds.cirr()
CIRCLED = worlds.circled()
SHAPES = spec("shapes/val")

broken = st.sampled_from(["im0", "im1", "im2", "im69", "no such image", "IM5", "im3.png"])


@st.composite
def answers(draw: st.DrawFn, benchmark: Benchmark, document: dict[str, Any]) -> dict[str, Any]:
    """A valid file's rankings with a few things changed."""
    found: dict[str, Any] = copy.deepcopy(document["rankings"])
    for name in draw(st.lists(st.sampled_from(sorted(found)), max_size=4)):
        if name not in found:
            continue
        change = draw(st.sampled_from(["replace", "cut", "drop", "empty", "longer", "turns"]))
        rankings = found[name] if benchmark.multi_turn else [found[name]]
        ranking = rankings[draw(st.integers(0, len(rankings) - 1))] if rankings else []
        if change == "drop":
            del found[name]
        elif change == "turns" and benchmark.multi_turn:
            found[name] = found[name][:-1] if draw(st.booleans()) else [*found[name], ["im1"]]
        elif change == "replace" and ranking:
            ranking[draw(st.integers(0, len(ranking) - 1))] = draw(broken)
        elif change == "longer":
            ranking.extend(draw(st.lists(broken, max_size=3)))
        else:
            del ranking[0 if change == "empty" else draw(st.integers(0, len(ranking))) :]
    if draw(st.booleans()):
        found["unheard of"] = copy.deepcopy(next(iter(document["rankings"].values())))
    return found


def findings_of(benchmark: Benchmark, columns: Columns, *, screened: bool = True) -> list[Finding]:
    found = Findings("run.json", benchmark.id)
    unchecked = UncheckedFile(benchmark.spec, 1, Method(name="toy"), columns, None, "native")
    with pytest.MonkeyPatch.context() as patch:
        if not screened:
            patch.setattr(
                validation, "suspects", lambda columns, _, queries, __: {*queries.num_turns} & {*columns}
            )
        validation.check_content(unchecked, queries(benchmark), found, part=True)
    return found.listed()


@given(answers(CIRR, worlds.cirr_document(CIRR)))
def test_screening_queries_hides_no_finding(rankings: dict[str, Any]) -> None:
    columns = Columns.of_lists(rankings, by_turn=False)
    assert findings_of(CIRR, columns) == findings_of(CIRR, columns, screened=False)


@given(answers(CIRCLED, worlds.circled_document(CIRCLED)))
def test_screening_sessions_hides_no_finding(rankings: dict[str, Any]) -> None:
    columns = Columns.of_lists(rankings, by_turn=True)
    assert findings_of(CIRCLED, columns) == findings_of(CIRCLED, columns, screened=False)


def test_without_a_gallery_ids_are_screened_for_their_form() -> None:
    benchmark = worlds.circo(gallery=None)
    rankings = worlds.circo_document(benchmark)["rankings"]
    rankings["1"][3] = "no digits"
    columns = Columns.of_lists(rankings, by_turn=False)
    found = findings_of(benchmark, columns)
    assert [finding.code for finding in found] == ["unknown-image"]
    assert found == findings_of(benchmark, columns, screened=False)


@st.composite
def worlds_of_queries(draw: st.DrawFn) -> tuple[Benchmark, dict[str, list[str]]]:
    """A made-up benchmark with several positives and hard negatives, and rankings of 50 of its 60 images."""
    gallery = [f"g{number}" for number in range(60)]
    rows, rankings = [], {}
    for number in range(draw(st.integers(1, 5))):
        order = draw(st.permutations(gallery))
        positives = order[: draw(st.integers(1, 6))]
        negatives = order[6 : 6 + draw(st.integers(0, 6))]
        more = {"positive_image_ids": positives, "negative_image_ids": negatives}
        subset = {"subset_image_ids": [order[-1], positives[0], *order[20:24]]}
        rows.append(worlds.query(f"q{number}", order[-1], positives[0], **more, **subset))
        ranked = [image for image in draw(st.permutations(gallery)) if image != order[-1]]
        rankings[f"q{number}"] = ranked[:50]
    return Benchmark.from_rows(SHAPES, rows, gallery), rankings


@given(worlds_of_queries(), st.randoms(use_true_random=False))
def test_scores_of_queries_are_those_of_the_lists(
    world: tuple[Benchmark, dict[str, list[str]]], random: Any
) -> None:
    benchmark, rankings = world
    subsets = {}
    for row in benchmark.rows():
        members = [image for image in row["subset_image_ids"] if image != row["reference_image_id"]]
        random.shuffle(members)
        subsets[row["query_id"]] = members[:3]
    names = list(rankings)
    random.shuffle(names)
    document = rank_file_of(
        "shapes/val",
        {name: rankings[name] for name in names},
        version=benchmark.spec.card.version,
        subset_rankings={name: subsets[name] for name in names},
    )
    from submissions.rank_file.model import compact

    report = score(compact(document), benchmark)
    expected = evaluate_single_turn(
        benchmark.spec.metrics,
        [rankings[query] for query in benchmark.query_ids],
        references(benchmark.rows()),
        subset_rankings=[subsets[query] for query in benchmark.query_ids],
    )
    assert report.metrics == expected.values
    for metric, values in expected.per_query.items():
        np.testing.assert_array_equal(report.evidence.values[metric], values)
    np.testing.assert_array_equal(report.evidence.ranks, expected.ranks)
    np.testing.assert_array_equal(report.evidence.list_lengths, expected.list_lengths)
    np.testing.assert_array_equal(report.evidence.subset_ranks, expected.subset_ranks)


@given(st.randoms(use_true_random=False))
def test_scores_of_sessions_are_those_of_the_lists(random: Any) -> None:
    gallery = [f"im{number}" for number in range(30)]
    rows = [worlds.session(f"s{n}", random.randint(1, 6), random.choice(gallery)) for n in range(5)]
    for row in rows:
        row["ground_truth_ids"] = random.sample(gallery, random.randint(1, 3))
    benchmark = Benchmark.from_rows(spec("circled/cirr_val"), rows, gallery)
    rankings = {
        row["session_id"]: [random.sample(gallery, 10) for _ in range(row["num_turns"])] for row in rows
    }
    document = worlds.circled_document(benchmark) | {"rankings": dict(reversed(rankings.items()))}
    from submissions.rank_file.model import compact

    report = score(compact(document), benchmark)
    expected = evaluate_multi_turn(benchmark.spec.metrics, list(rankings.values()), references(rows))
    assert report.metrics == expected.values
    np.testing.assert_array_equal(report.evidence.ranks, expected.ranks)
    np.testing.assert_array_equal(report.evidence.list_lengths, expected.list_lengths)
    np.testing.assert_array_equal(report.evidence.num_turns, expected.num_turns)


@pytest.mark.parametrize("table", [1, 7, 2**22])
@given(random=st.randoms(use_true_random=False))
def test_marks_are_those_of_a_loop(table: int, random: Any) -> None:
    n_images, depth = random.randint(1, 9), random.randint(1, 6)
    rankings = [
        random.sample(range(n_images), min(depth, random.randint(0, n_images)))
        for _ in range(random.randint(1, 6))
    ]
    wanted = [random.sample([*range(n_images), -1], random.randint(0, min(4, n_images))) for _ in rankings]
    codes = np.full((len(rankings), depth), -1, dtype=np.int32)
    for row, ranking in zip(codes, rankings, strict=True):
        row[: len(ranking)] = ranking
    offsets = np.cumsum([0, *map(len, wanted)])
    members = np.array([image for images in wanted for image in images], dtype=np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cir_metrics.evaluation._TABLE", table)
        [mask] = mark(codes, [(offsets, members)], n_images)
    expected = [
        [place >= 0 and place in images for place in row] for row, images in zip(codes, wanted, strict=True)
    ]
    assert mask.tolist() == expected
