"""The images that each query ranks, as numbers: held against plain lists."""

from __future__ import annotations

import benchmark_world as worlds
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cir_datasets.registry import spec
from cir_datasets.rows.benchmark import GALLERY, SUBSET, QueryLists, first_ranking, second_ranking

IDS = st.sampled_from("abcdefgh")
LISTS = st.lists(st.tuples(st.lists(IDS, unique=True, max_size=6), IDS), min_size=1, max_size=6)


@given(LISTS)
def test_lists_are_what_they_were_without_what_is_left_out(drawn: list[tuple[list[str], str]]) -> None:
    names = [f"q{number}" for number in range(len(drawn))]
    column = pa.chunked_array([pa.array([images for images, _ in drawn], pa.list_(pa.string()))])
    found = QueryLists(names, column, pa.array([left_out for _, left_out in drawn]))
    twin = {name: set(images) - {left_out} for name, (images, left_out) in zip(names, drawn, strict=True)}
    assert {name: set(found[name]) for name in names} == twin
    assert found.lengths.tolist() == [len(twin[name]) for name in names]
    assert [found.length(name) for name in names] == found.lengths.tolist()
    known = found.images.to_pylist()
    for place, name in enumerate(names):
        held = found.holds(np.full(len(known), place), np.arange(len(known)))
        assert [image in twin[name] for image in known] == held.tolist()
        assert found.lacking(name, "abcdefghz") == set("abcdefghz") - twin[name]
    assert not found.holds(np.arange(len(names)), np.full(len(names), -1)).any()


def test_rankings_are_over_the_gallery_and_over_cirrs_six() -> None:
    first, second = first_ranking(spec("cirr/val")), second_ranking(spec("cirr/val"))
    assert (first.column, second.column) == ("", SUBSET)
    assert second.removes_reference
    assert second.on_board
    assert second_ranking(spec("circo/val")) is None
    benchmark = worlds.cirr()
    lists = benchmark.query_lists(second)
    for row in benchmark.rows():
        assert (
            lists[row["query_id"]]
            == set(second.images(row))
            == set(row[SUBSET]) - {row["reference_image_id"]}
        )


def test_the_column_of_own_galleries_is_one_name() -> None:
    from cir_datasets.rows.records import GALLERY_FIELD

    assert GALLERY_FIELD.name == GALLERY
