"""Published rows whose numbers come near to those of a reading."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cir_datasets.registry.published import published

if TYPE_CHECKING:
    from submissions.explaining.readings import FileReading

WITHIN = 2.0
"""Points that each number may be off."""
_SHARED = 2
"""Metrics that a row and a reading have in common at least: one alone is near by chance."""
_ROWS = 3


@dataclass(frozen=True)
class NearRow:
    """A published row beside the reading that it comes nearest to.

    Args:
        method: as its source names it.
        source: source, table and row.
        protocol: what the source claims of split and gallery.
        benchmark: the benchmark or suite that its numbers stand for.
        reading: the reading's label.
        difference: mean over the metrics that both have, in points.
        values: by metric the number as it is printed.
    """

    method: str
    source: str
    protocol: str
    benchmark: str
    reading: str
    difference: float
    values: dict[str, str]


def near_rows(readings: Sequence[FileReading], benchmarks: Collection[str]) -> tuple[NearRow, ...]:
    """The rows that come nearest, each once, the nearest first.

    Args:
        readings: those of one file.
        benchmarks: ids that its numbers may stand under: of the benchmark, or of those of the same queries.
    """
    found: dict[str, NearRow] = {}
    for row_id, row in _within(readings, benchmarks):
        if row_id not in found or row.difference < found[row_id].difference:
            found[row_id] = row
    return tuple(heapq.nsmallest(_ROWS, found.values(), key=lambda row: row.difference))


def _within(readings: Sequence[FileReading], benchmarks: Collection[str]) -> Iterator[tuple[str, NearRow]]:
    rows = [row for row in published() if any(name in benchmarks for name, _ in row.numbers)]
    for reading in readings:
        for row in rows:
            for benchmark in benchmarks:
                printed = {
                    metric: number for (name, metric), number in row.numbers.items() if name == benchmark
                }
                shared = [metric for metric in reading.values if metric in printed]
                off = [abs(100 * reading.values[each] - float(printed[each].value)) for each in shared]
                if len(off) >= _SHARED and max(off) <= WITHIN:
                    values = {metric: printed[metric].text for metric in shared}
                    difference = round(sum(off) / len(off), 2)
                    said = row.label, row.where, row.table.protocol, benchmark, reading.label
                    yield row.id, NearRow(*said, difference, values)
