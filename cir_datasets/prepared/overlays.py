"""Overlays laid over prepared rows: those that a list names, in a prepared folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cir_datasets.errors import OverlayError
from cir_datasets.prepared.tables import write_places
from cir_datasets.registry.overlays import LABEL_FIELD, Overlay
from cir_datasets.rows import read_table
from cir_datasets.rows.hashing import data_hash

_SHOWN = 5


def restrict(table: pa.Table, overlay: Overlay) -> pa.Table:
    """The rows that an overlay lists, in the table's order, with the column `overlay_label`.

    Args:
        table: all rows of the benchmark.
        overlay: the filter list.

    Raises:
        OverlayError: it names a query that the table lacks; the message names the first ones.
    """
    column = table.column(id_field(table.schema.names))
    known = set(column.to_pylist())
    unknown = [query for query in overlay.labels if query not in known]
    if unknown:
        raise OverlayError(
            f"{overlay.id}: {len(unknown):,} of its {len(overlay.labels):,} queries are unknown to "
            f"{overlay.benchmark}: {', '.join(map(repr, unknown[:_SHOWN]))}. Fix: list query ids of "
            f"{overlay.benchmark} as `cir_datasets.load` gives them."
        )
    kept = table.filter(pc.is_in(column, value_set=pa.array(list(overlay.labels), pa.string())))
    labels = [overlay.labels[query] for query in kept.column(id_field(kept.schema.names)).to_pylist()]
    return kept.append_column(LABEL_FIELD, pa.array(labels, pa.string()))


def id_field(names: Iterable[str]) -> str:
    """The column that holds the id of a row."""
    return "session_id" if "session_id" in names else "query_id"


def make_overlaid(rows_file: Path, images_file: Path | None, overlay: Overlay, made: Path) -> dict[str, Any]:
    """Write the rows of a prepared benchmark that an overlay lists, and the gallery, to a folder.

    Args:
        rows_file: all rows of the benchmark.
        images_file: its gallery, or None.
        overlay: the filter list.
        made: the folder.

    Returns:
        What `meta.json` says otherwise than that of the benchmark.

    Raises:
        OverlayError: the overlay names a query that the benchmark lacks.
    """
    rows = read_table(rows_file)
    kept = restrict(rows, overlay)
    left_out = set(rows.column(id_field(rows.schema.names)).to_pylist()) - set(overlay.labels)
    pq.write_table(kept, made / "rows.parquet")
    if images_file is not None:
        shutil.copyfile(images_file, made / "images.parquet")
        write_places(made)
    return {
        "rows": kept.num_rows,
        "data_hash": data_hash(kept.to_pylist()),
        "left_out": sorted(left_out),
    }
