"""Where published results give one method different numbers: all of them side by side, and why, where known.

Found by code over all sources, so that a new source needs no list of its own. What explains a difference is
data, `published_explanations.yaml`, and says no more than the sources do.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

from cir_datasets.common.yaml import package_yaml
from cir_datasets.registry.published import Number, Reported, published
from leaderboard.pages.published_rows import metric_order

UNEXPLAINED = "The sources do not say why."
_BACKBONE = re.compile(r"\b([BLHG])/(\d\d)\b")

_Numbered = tuple[Reported, Number]


@dataclass(frozen=True)
class MethodDifferences:
    """A method of several numbers on one benchmark or suite.

    Args:
        method: the name that the rows share.
        benchmark: its id.
        numbers: by metric in which they differ the rows and what each says, the largest number first.
        why: a sentence on what explains it, or that the sources do not say.
    """

    method: str
    benchmark: str
    numbers: Mapping[str, Sequence[_Numbered]]
    why: str

    @property
    def rows(self) -> list[tuple[Reported, list[Number | None]]]:
        """The rows, and by metric the number, or None where a row has none or has no other than the rest."""
        rows = {id(row): row for numbers in self.numbers.values() for row, _ in numbers}
        by_row = [{id(row): number for row, number in numbers} for numbers in self.numbers.values()]
        return [(row, [numbers.get(key) for numbers in by_row]) for key, row in rows.items()]

    @property
    def largest(self) -> list[Decimal]:
        """By metric the largest difference of two of the numbers, as they are shown."""
        ends = [(numbers[0][1], numbers[-1][1]) for numbers in self.numbers.values()]
        return [Decimal(high.text) - Decimal(low.text) for high, low in ends]

    @property
    def first(self) -> list[str]:
        """The numbers of the first metric, each once, the largest first."""
        numbers = next(iter(self.numbers.values()))
        return list({Decimal(number.text): number.text for _, number in numbers}.values())

    @property
    def anchor(self) -> str:
        """Id of the element that lists the several numbers of the method on the benchmark."""
        words = f"{self.method} {self.benchmark}".casefold()
        return "several-" + "".join(letter if letter.isalnum() else "-" for letter in words)


@functools.cache
def differences() -> tuple[MethodDifferences, ...]:
    """Every method and benchmark for which sources give numbers that differ, method by method.

    Versions that one table tells apart by name or backbone are not counted, nor are rows whose stated
    backbones differ, nor what rounding explains.

    Example:
        >>> by_place = {(one.method, one.benchmark): one for one in differences()}
        >>> one = by_place["SPRC", "fashioniq/val"]
        >>> [number.text for _, number in one.numbers["mean(recall@10, recall@50)"]]
        ['64.85', '62.135']
    """
    groups: dict[tuple[str, str, str], list[_Numbered]] = {}
    for row in published():
        for slot, number in row.numbers.items():
            groups.setdefault((row.names[-1].casefold(), *slot), []).append((row, number))
    why = {
        (entry["method"].casefold(), benchmark): entry["why"].strip()
        for entry in package_yaml("leaderboard", "pages/published_explanations.yaml")
        for benchmark in entry["benchmarks"]
    }
    found: dict[tuple[str, str], dict[str, list[_Numbered]]] = {}
    for method, benchmark, metric in sorted(groups, key=lambda slot: metric_order(slot[2])):
        differing = _differing(groups[method, benchmark, metric])
        if differing:
            found.setdefault((method, benchmark), {})[metric] = differing
    several = []
    for place, by_metric in found.items():
        # The shortest spelling is the name without what a source adds to it.
        name = min((row.names[-1] for differing in by_metric.values() for row, _ in differing), key=len)
        numbers = {
            metric: sorted(differing, key=lambda one: -one[1].value)
            for metric, differing in by_metric.items()
        }
        several.append(MethodDifferences(name, place[1], numbers, why.get(place, UNEXPLAINED)))
    return tuple(sorted(several, key=lambda one: one.method.casefold()))


def _differing(rows: Sequence[_Numbered]) -> list[_Numbered]:
    """Those of the rows that differ from another one, for no reason that the rows themselves give."""
    differing: dict[int, _Numbered] = {}
    for one, other in combinations(rows, 2):
        if _are_told_apart(one[0], other[0]) or one[1].may_be(other[1]):
            continue
        if not (_is_elsewhere(one, other, rows) or _is_elsewhere(other, one, rows)):
            differing |= {id(one): one, id(other): other}
    return list(differing.values())


def _are_told_apart(one: Reported, other: Reported) -> bool:
    """Whether their table, or the backbones that they state, say that these are two models."""
    is_named_apart = (one.method.casefold(), one.backbone) != (other.method.casefold(), other.backbone)
    first, second = (_BACKBONE.search(row.backbone) or _BACKBONE.search(row.method) for row in (one, other))
    states_two = first is not None and second is not None and first.group() != second.group()
    return (one.table is other.table and is_named_apart) or states_two


def _is_elsewhere(one: _Numbered, other: _Numbered, rows: Sequence[_Numbered]) -> bool:
    """Whether the other's table has `one`'s number for another version: then `one` is that version."""
    return any(
        row.table is other[0].table
        and row is not other[0]
        and row.table is not one[0].table
        and number.may_be(one[1])
        for row, number in rows
    )
