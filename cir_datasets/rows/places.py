"""Where a benchmark's ground truth stands in its gallery, noted once at preparation.

Scoring compares ids. A million of them as texts take longer to read than all metrics to compute; as places in
the manifest they are small numbers, and only the manifest itself is looked up.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PLACES_FILE = "places.parquet"
_BATCH_ROWS = 2**15
_ID_COLUMNS = ("target_image_id", "positive_image_ids", "negative_image_ids", "ground_truth_ids")


def write_places(folder: Path) -> None:
    """Write `places.parquet` beside a prepared benchmark's rows and manifest.

    A column with an id that the manifest does not name is left out: its readers take the ids.

    Args:
        folder: holds `rows.parquet` and `images.parquet`.
    """
    gallery = pq.read_table(folder / "images.parquet", columns=["image_id"]).column(0).combine_chunks()
    rows = pq.ParquetFile(folder / "rows.parquet")
    columns: dict[str, pa.ChunkedArray] = {"row": pa.chunked_array([pa.array(range(rows.metadata.num_rows))])}
    for name in _ID_COLUMNS:
        if name in rows.schema_arrow.names:
            found = _column(rows, name, gallery)
            if found:
                columns[name] = pa.chunked_array(found)
    table = pa.table(columns)
    pq.write_table(table, folder / PLACES_FILE, row_group_size=max(1, len(table)))


def _column(rows: pq.ParquetFile, name: str, gallery: pa.Array) -> list[pa.Array]:
    """Places of a column, the ids of a batch in memory at a time; empty where one is not in the gallery."""
    found = []
    for batch in rows.iter_batches(_BATCH_ROWS, columns=[name]):
        places = _places(batch.column(0), gallery)
        if places is None:
            return []
        found.append(places)
    return found


def _places(chunk: pa.Array, gallery: pa.Array) -> pa.Array | None:
    """Places of ids or of lists of ids; None where one is not in the gallery."""
    listed = pa.types.is_list(chunk.type)
    ids = chunk.flatten() if listed else chunk
    places = pc.index_in(ids, value_set=gallery)
    if places.null_count != ids.null_count:
        return None
    if not listed:
        return places
    lengths = pc.list_value_length(chunk).fill_null(0)
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths.to_numpy())]), pa.int32())
    return pa.ListArray.from_arrays(ends, places, mask=chunk.is_null() if chunk.null_count else None)
