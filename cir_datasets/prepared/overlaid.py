"""Overlays laid over prepared rows, and checked against them when they are registered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cir_datasets.errors import OverlayError
from cir_datasets.registry.overlay import LABEL_FIELD, Overlay

if TYPE_CHECKING:
    import pyarrow as pa


_SHOWN = 5


def restrict(table: pa.Table, overlay: Overlay) -> pa.Table:
    """The rows that an overlay lists, in the table's order, with the column `overlay_label`.

    Args:
        table: all rows of the benchmark.
        overlay: the filter list.

    Raises:
        OverlayError: it names a query that the table lacks; the message names the first ones.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

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
