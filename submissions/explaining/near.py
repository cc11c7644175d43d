"""Published rows whose numbers come near to those of a reading."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from cir_datasets.registry.published import published

if TYPE_CHECKING:
    from cir_datasets.registry.published import Reported
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


def near_rows(numbers: Iterable[tuple[Sequence[FileReading], Sequence[str]]]) -> tuple[NearRow, ...]:
    """The rows that come nearest, each once, the nearest first.

    Args:
        numbers: readings, and the benchmarks or suites that their numbers may stand for.
    """
    found: dict[str, NearRow] = {}
    for readings, names in numbers:
        for row, name, reading in product(published(), names, readings):
            near = _near(row, name, reading)
            if near is not None and (row.id not in found or near.difference < found[row.id].difference):
                found[row.id] = near
    return tuple(sorted(found.values(), key=lambda near: near.difference)[:_ROWS])


def _near(row: Reported, name: str, reading: FileReading) -> NearRow | None:
    printed = {metric: row.values[name, metric] for metric in reading.values if (name, metric) in row.values}
    off = [abs(100 * reading.values[metric] - float(text)) for metric, text in printed.items()]
    if len(off) < _SHARED or max(off) > WITHIN:
        return None
    difference = round(math.fsum(off) / len(off), 2)
    return NearRow(row.label, row.where, row.table.protocol, name, reading.label, difference, printed)
