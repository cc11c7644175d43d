"""Files that groups published are explained by the facts that a plain loop found in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import submissions

HOME = os.environ.get("CIR_DATA_HOME", "")
FILES = Path(HOME).parent / "rank_files"

pytestmark = pytest.mark.skipif(
    not HOME or not FILES.is_dir(),
    reason="no folder rank_files beside CIR_DATA_HOME: no files that others published",
)
DEMO = "demo_recall_combiner-bi.json"
SUBSET = "demo_recall_subset_combiner-bi.json"
FACTS = {
    DEMO: ("cirr/test1", 4148, 50, 0, 0, 0, 0),
    SUBSET: ("cirr/test1", 4148, 3, 0, 0, 0, 0),
    "pefuse_cirr_a.json": ("cirr/test1", 4148, 50, 2166, 244, 5363, 1990),
    "pefuse_cirr_b.json": ("cirr/test1", 4148, 50, 3010, 776, 5621, 1700),
    "pefuse_circo_a.json": ("circo/test", 800, 50, 346, None, None, None),
    "pefuse_circo_b.json": ("circo/test", 800, 50, 448, None, None, None),
    "pic2word_on_cirr.val.json": ("cirr/val", 4181, 50, 3848, 1758, 0, 0),
}
"""Benchmark, lists, depth; reference in, first in; images outside, first in. None: not counted there."""


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of its own: what other tests prepared of CIRR, of a few made-up rows, would be asked first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CIR_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.parametrize("name", FACTS)
def test_a_published_file_is_counted(name: str) -> None:
    explanation = submissions.explain(FILES / name)
    (rankings,) = explanation.rankings
    names = ("lists", "longest", "reference_held", "reference_first", "outside", "outside_first")
    benchmark, *facts = FACTS[name]
    counts = [rankings.counts[each] for each in names]
    assert explanation.benchmark == benchmark
    assert [count for count, fact in zip(counts, facts, strict=True) if fact is not None] == [
        fact for fact in facts if fact is not None
    ]
    assert rankings.counts["shortest"] == rankings.counts["longest"]
    assert rankings.withheld == (benchmark != "cirr/val")
    assert bool(rankings.readings) == (benchmark == "cirr/val")
    assert len(explanation.text().splitlines()) <= 40


def test_pic2word_on_cirr_scores_as_a_plain_loop_does_with_the_reference_and_without() -> None:
    (rankings,) = submissions.explain(FILES / "pic2word_on_cirr.val.json").rankings
    found = {
        reading.reference: [round(100 * reading.values[f"recall@{k}"], 2) for k in (1, 5, 10, 50)]
        for reading in rankings.readings
    }
    assert found == {"kept": [15.21, 44.53, 58.10, 81.56], "removed": [21.12, 47.07, 59.53, 81.56]}


def test_rows_of_the_split_that_papers_print_stand_beside_a_file_for_another() -> None:
    near = submissions.explain(FILES / "pic2word_on_cirr.val.json").near
    assert near
    for row in near:
        assert (row.benchmark, row.reading) == ("cirr/test1", "reference kept")
        assert row.difference <= 2
        assert row.source
        assert row.protocol
