"""The places that are noted at preparation name the same images as the ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cir_datasets
from cir_datasets.errors import DatasetError
from cir_datasets.places import write_places
from cir_datasets.prepared import row_schema
from cir_datasets.stored import StoredRows
from submissions import score
from submissions.methods import make_rank_file

GALLERY = ["a", "b", "é", "d"]
IDS = pa.list_(pa.string())


def stored(folder: Path, **columns: pa.ChunkedArray) -> StoredRows:
    pq.write_table(pa.table({"image_id": GALLERY}), folder / "images.parquet")
    pq.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=2)
    write_places(folder)
    return StoredRows(folder / "rows.parquet")


def read(rows: StoredRows, name: str) -> Any:
    places = rows.places(name)
    return None if places is None else places.to_pylist()


def test_of_ids_of_lists_and_of_what_is_withheld(tmp_path: Path) -> None:
    rows = stored(
        tmp_path,
        target_image_id=pa.array(["d", None, "a"]),
        positive_image_ids=pa.array([["d", "a"], None, ["é"]], IDS),
        negative_image_ids=pa.array([[], [], []], IDS),
        reference_image_id=pa.array(["a", "b", "é"]),
    )
    assert read(rows, "target_image_id") == [3, None, 0]
    assert read(rows, "positive_image_ids") == [[3, 0], None, [2]]
    assert read(rows, "negative_image_ids") == [[], [], []]
    assert read(rows, "reference_image_id") is None


def test_a_column_with_an_id_from_outside_the_gallery_has_none(tmp_path: Path) -> None:
    rows = stored(
        tmp_path, target_image_id=pa.array(["a", "b"]), positive_image_ids=pa.array([["a"], ["z"]], IDS)
    )
    assert read(rows, "target_image_id") == [0, 1]
    assert read(rows, "positive_image_ids") is None


def test_places_of_other_rows_are_not_used(tmp_path: Path) -> None:
    rows = stored(tmp_path, target_image_id=pa.array(["a", "b"]))
    pq.write_table(pa.table({"target_image_id": [0]}), tmp_path / "places.parquet")
    assert read(rows, "target_image_id") is None
    (tmp_path / "places.parquet").unlink()
    assert read(rows, "target_image_id") is None
    (tmp_path / "places.parquet").write_bytes(b"PAR1")
    with pytest.raises(DatasetError, match=r"places\.parquet: cannot be read .* Fix: `cir datasets prepare"):
        rows.places("target_image_id")


@pytest.mark.parametrize("benchmark_id", ["shapes/val", "shapes/multiturn_val"])
def test_scores_are_the_same_with_and_without(benchmark_id: str) -> None:
    benchmark = cir_datasets.load(benchmark_id)
    names = [
        name for name in ("positive_image_ids", "ground_truth_ids") if name in benchmark.table.column_names
    ]
    for name in names:
        places = benchmark.places(name)
        assert places is not None
        gallery = list(benchmark.gallery or [])
        assert [[gallery[place] for place in row] for row in places.to_pylist()] == benchmark.column(name)
    rank_file = make_rank_file(benchmark, "random")
    with_places = score(rank_file, benchmark)
    in_memory = cir_datasets.Benchmark.from_rows(
        benchmark.spec, benchmark.rows(), gallery=benchmark.gallery, schema=row_schema(benchmark.spec)
    )
    assert in_memory.places(names[0]) is None
    assert score(rank_file, in_memory).to_dict() == with_places.to_dict()
