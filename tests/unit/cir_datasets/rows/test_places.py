"""The places that are noted at preparation name the same images as the ids."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from programs import run_program

import cir_datasets
from cir_datasets.errors import DatasetError
from cir_datasets.prepared import row_schema
from cir_datasets.prepared.tables import write_places
from cir_datasets.rows import StoredRows
from submissions import make_rank_file, score

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


def test_places_hold_single_ids_lists_and_withheld_values(tmp_path: Path) -> None:
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
    with pytest.raises(DatasetError, match=r"places\.parquet: cannot be read .* Fix: remove "):
        rows.places("target_image_id")


@pytest.mark.parametrize("benchmark_id", ["shapes/val", "shapes/multiturn_val"])
def test_scores_are_the_same_with_and_without(benchmark_id: str) -> None:
    benchmark = cir_datasets.load(benchmark_id)
    names = [
        name for name in ("positive_image_ids", "ground_truth_ids") if name in benchmark.table.column_names
    ]
    for name in names:
        places = benchmark.places(name)
        gallery = list(benchmark.gallery or [])
        assert [[gallery[place] for place in row] for row in places.to_pylist()] == benchmark.column(name)
    rank_file = make_rank_file(benchmark, "random")
    with_places = score(rank_file, benchmark)
    in_memory = cir_datasets.Benchmark.from_rows(
        benchmark.spec, benchmark.rows(), gallery=benchmark.gallery, schema=row_schema(benchmark.spec)
    )
    assert in_memory.places(names[0]) is None
    assert score(rank_file, in_memory).to_dict() == with_places.to_dict()


PEAK = """
import sys
from pathlib import Path
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cir_datasets.prepared.tables import write_places

folder, rows, each = Path(sys.argv[1]), 200_000, 10
ids = pa.array([f"frames/a_video_of_some_length/{number:06d}.jpg" for number in range(5_000)])
names = ids.take(pa.array(np.arange(rows * each, dtype=np.int64) * 7919 % len(ids)))
lists = pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32) * each), names)
size = names.nbytes
pq.write_table(pa.table({"image_id": ids}), folder / "images.parquet")
pq.write_table(pa.table({"negative_image_ids": lists}), folder / "rows.parquet", row_group_size=rows // 4)
del names, lists
before = pa.total_allocated_bytes()
assert before < size / 10
# The peak so far is that of making the rows, in whichever pool is the default: this one sees what comes now.
pool = pa.proxy_memory_pool(pa.system_memory_pool())
pa.set_memory_pool(pool)
write_places(folder)
print(size, pool.max_memory())
"""


def test_ids_are_read_a_batch_at_a_time(tmp_path: Path) -> None:
    done = run_program([sys.executable, "-c", PEAK, str(tmp_path)])
    ids, peak = map(int, done.stdout.split())
    # Places are small numbers: four bytes for an id of 45.
    assert peak < ids
    places = pq.read_table(tmp_path / "places.parquet").column("negative_image_ids")
    assert places[1].as_py() == [number * 7919 % 5_000 for number in range(10, 20)]
