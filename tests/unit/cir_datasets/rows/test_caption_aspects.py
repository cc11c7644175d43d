"""The nine aspects of CIRR's Table 1: the paper's examples, its coverage, and what reports make of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import datasets_publishers as made
import numpy as np
import pytest

import cir_datasets
from cir_datasets import registry
from cir_datasets.common.yaml import package_yaml
from cir_datasets.rows.benchmark import Benchmark
from cir_datasets.rows.caption_aspects import aspect_table, caption_aspects, query_aspects
from cir_datasets.statistics.counts import measure
from cir_datasets.statistics.report import aspects_table, auxiliary_table
from submissions.report import full_report

HOME = os.environ.get("CIR_DATA_HOME", "")
POINTS = 6


@pytest.mark.parametrize(
    ("aspect", "example"),
    list(
        zip(
            aspect_table(),
            [
                "Only one of the boars and the ground is browner.",
                "Add human feet and a collar.",
                "Remove the chair, make the dog sit in an open box.",
                "Show some lemons with a glass of lemonade.",
                "Same computer but different finish and black background.",
                "A bigger pub with more people on it.",
                "Remove all but one bird and have it facing right and putting food in its mouth.",
                "Change the sky to blue color.",
                "Focus widely on all available cookies package.",
            ],
            strict=True,
        )
    ),
)
def test_the_papers_example_of_an_aspect_has_it(aspect: str, example: str) -> None:
    assert aspect in caption_aspects([example])


@pytest.mark.parametrize(
    ("caption", "absent"),
    [
        ("a tower beside the river under water", "comparative_statement"),
        ("is longer", "direct_addressing"),
        ("the notebook is on the table", "negation"),
        ("stone walls", "cardinality"),
        ("candy in a box", "statement_with_conjunction"),
        ("", "direct_addressing"),
    ],
)
def test_words_that_only_look_alike_have_no_aspect(caption: str, absent: str) -> None:
    assert absent not in caption_aspects([caption])


def test_the_aspects_of_a_query_are_those_of_all_its_captions() -> None:
    assert caption_aspects(["is blue", "has no sleeves"]) == ["negation", "direct_addressing"]
    # One addresses directly, the other compares: the query does both.
    assert caption_aspects(["is blue", "is longer"]) == ["direct_addressing", "comparative_statement"]


def test_aspects_that_a_row_states_stay() -> None:
    names = registry.card("cirr").report.aspect_names
    assert names == {key: entry["name"] for key, entry in aspect_table().items()}
    assert query_aspects({"aspects": ["addition"], "captions": ["no dog"]}, names) == ["addition"]
    assert query_aspects({"aspects": [], "captions": ["no dog"]}, {}) == []


def test_a_cirr_report_is_by_the_aspects_of_the_captions_and_its_hash_is_without_them() -> None:
    captions = ["add two dogs", "no dog", "is longer", "focus on the dog", "same dog but in the grass", ""]
    plain = worlds.cirr(queries=len(captions))
    rows: list[dict[str, Any]] = plain.rows()
    for row, caption in zip(rows, captions, strict=True):
        row |= {"captions": [caption], "relative_caption": caption, "aspects": []}
    benchmark = Benchmark.from_rows(plain.spec, rows, plain.gallery)
    ranks = [(1, 1), (7, 2), (2, 1), (1, 3), (30, 1), (4, 1)]
    report = full_report(worlds.score(worlds.cirr_at(benchmark, ranks), benchmark))
    groups = {group.key: group for group in report.groupings["by_aspect"].groups}
    assert list(groups) == list(aspect_table())
    for key, group in groups.items():
        has = np.array([key in caption_aspects([caption]) for caption in captions])
        assert group.n == has.sum()
        for metric in ("recall@5", "recall_subset@1"):
            values = report.score.evidence.values[metric]  # type: ignore[union-attr]
            assert group.values[metric] == (values[has].mean() if has.any() else None)
    assert "1 query has no aspect." in report.groupings["by_aspect"].notes
    assert benchmark.missing_aspects == ()


@pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")
def test_closed_loops_and_auxiliary_answers_are_counted(tmp_path: Path) -> None:
    root = made.write_cirr_loops(tmp_path, "val")

    def answered(records: list[dict[str, Any]]) -> None:
        for record in records[:4]:
            record["caption_extend"] |= {"0": "a dog", "3": "[cr1] Covered in query"}

    made.edit(root / "captions_ext/cap.ext.rc2.val.json", answered)
    found = measure(made.load_unchecked("cirr/val", tmp_path), tags=False)
    assert (found.subset_loops, found.subsets, found.auxiliary) == (2, 3, {0: 4, 1: 0, 2: 0, 3: 0})
    assert auxiliary_table([found]).splitlines()[1].split()[:2] == ["cirr/val", "23.5"]
    assert found.aspect_shares["direct_addressing"] == 1.0
    assert "cirr, Table 1" in aspects_table([found])


@pytest.mark.real_data
@pytest.mark.skipif(not HOME, reason="CIR_DATA_HOME is not set: no real annotations")
def test_coverage_is_the_papers_within_six_points_or_says_why() -> None:
    """The paper's is over all splits; captions of other captioners would be counted by the same patterns."""
    folder = Path(HOME)
    captions = {
        "cirr": [
            each["caption"]
            for each in json.loads((folder / "cirr/captions/cap.rc2.val.json").read_text(encoding="utf-8"))
        ],
        "fashioniq": [
            caption
            for category in ("dress", "shirt", "toptee")
            for each in json.loads(
                (folder / f"fashion-iq/captions/cap.{category}.val.json").read_text(encoding="utf-8")
            )
            for caption in each["captions"]
            if caption.strip()
        ],
    }
    compared = 0
    for name, texts in captions.items():
        aspects = [caption_aspects([text]) for text in texts]
        for key, entry in aspect_table().items():
            published = entry["published"].get(name)
            if published is None:
                continue
            ours = 100 * sum(key in each for each in aspects) / len(texts)
            near = abs(ours - published) <= POINTS
            assert near != (name in entry.get("differs", {})), (name, key, ours, published)
            compared += 1
    assert compared == 15


@pytest.mark.real_data
@pytest.mark.skipif(not HOME, reason="CIR_DATA_HOME is not set: no real annotations")
def test_the_rows_of_cirr_are_what_they_were_before_it_had_aspects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path))
    benchmark = cir_datasets.load("cirr/val")
    assert benchmark.data_hash.startswith("e364e167ffcd")
    found = measure(benchmark, tags=False)
    assert (found.subset_loops, found.subsets) == (369, 503)
    assert [round(100 * share, 1) for share in found.auxiliary_shares or ()] == [77.9, 73.0, 55.2, 65.2]


@pytest.mark.parametrize(
    ("benchmark", "pairs"), [("cirr/val", 4181), ("cirr/val", 4184), ("cirr/test1", 4148)]
)
def test_table_6_has_a_share_that_no_number_of_the_published_pairs_has(benchmark: str, pairs: int) -> None:
    share = package_yaml("cir_datasets", "statistics/auxiliary.yaml")[benchmark][1]
    assert all(abs(100 * answers / pairs - share) > 0.005 for answers in range(pairs + 1))
