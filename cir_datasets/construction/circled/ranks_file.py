"""What lies beside sessions of `cir make circled`: how each was made, and the query that it began with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cir_datasets.errors import ConstructionError
from cir_datasets.rows.benchmark import SOURCE_QUERY

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark

RANKS_FILE = "ranks.jsonl"
"""Of each session the ranks, the merged captions and the target aimed at last."""


def session_traces(benchmark: Benchmark) -> dict[str, dict[str, Any]]:
    """By session what `cir make circled` noted beside it: its query, ranks, merged captions and last aim.

    Raises:
        ConstructionError: the file is damaged.
    """
    if not benchmark.spec.card.in_folder:
        return {}
    from cir_datasets.registry.folders import folder_of

    path = folder_of(benchmark.spec.card.name) / RANKS_FILE
    if not path.is_file():
        return {}
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return {row["session_id"]: {**row, "merged": list(row["merged"])} for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConstructionError(
            f"{path}: it is damaged. Fix: run `cir make circled` again, or remove it."
        ) from error


def source_benchmark(benchmark: Benchmark) -> str | None:
    """Id of the benchmark whose queries the sessions began with, where it is known."""
    if not benchmark.spec.card.in_folder:
        return benchmark.spec.config.gallery_from
    from cir_datasets.registry.folders import folder_of, read_folder_card

    source = read_folder_card(folder_of(benchmark.spec.card.name)).made.get("benchmark")
    return None if source is None else str(source)


def source_queries(benchmark: Benchmark) -> dict[str, str]:
    """By session the query that it began with, where it is known: of CIRCLED, and of what was made here."""
    if SOURCE_QUERY in benchmark.table.column_names:
        pairs = zip(benchmark.query_ids, benchmark.column(SOURCE_QUERY), strict=True)
        return {session: query for session, query in pairs if query is not None}
    return {session: row["query"] for session, row in session_traces(benchmark).items() if "query" in row}
