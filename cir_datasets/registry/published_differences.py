"""Where published results give one method different numbers: all of them side by side, and why, where known.

Found by code over all sources, so that a new source needs no list of its own. What explains a difference is
data, `registry/published_explanations.yaml`, and says no more than the sources do.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import combinations

from cir_datasets.common.yaml import own_yaml
from cir_datasets.registry.published import Reported, published

UNEXPLAINED = "The sources do not say why."
_BACKBONE = re.compile(r"\b([BLHG])/(\d\d)\b")
_SHOWN = Decimal("0.001")
_MEAN_ERROR = Decimal("0.01")
"""How far a printed mean and the mean of printed numbers may be apart by rounding alone, in points."""


@dataclass(frozen=True)
class Number:
    """A number of one published row.

    Args:
        value: in per cent, of ranks the rank.
        text: as it is printed; the mean of printed numbers as `mean_text` writes it.
        is_derived: whether it is the mean of numbers that the source prints, and is not printed itself.
    """

    value: Decimal
    text: str
    is_derived: bool


@dataclass(frozen=True)
class SeveralNumbers:
    """One method, benchmark and metric, and numbers that differ.

    Args:
        method: the name that they share.
        benchmark: id of the benchmark or suite.
        metric: its printed name.
        numbers: the rows and what each says, the largest number first.
        why: a sentence on what explains it, or that the sources do not say.
    """

    method: str
    benchmark: str
    metric: str
    numbers: tuple[tuple[Reported, Number], ...]
    why: str

    @property
    def largest(self) -> Decimal:
        """The largest difference of two of the numbers, as they are shown."""
        return Decimal(self.numbers[0][1].text) - Decimal(self.numbers[-1][1].text)


def mean_text(value: Decimal) -> str:
    """A mean that no source prints, as it is shown: with three digits where two do not hold it.

    So the mean of two printed numbers is exact; a longer one is rounded, halves away from zero.

    Args:
        value: in per cent.

    Example:
        >>> [mean_text(Decimal(text)) for text in ("62.135", "59.66", "37.5325", "30")]
        ['62.135', '59.66', '37.533', '30.00']
    """
    return str(value.quantize(_SHOWN, ROUND_HALF_UP)).removesuffix("0")


def numbers_of(row: Reported) -> dict[tuple[str, str], Number]:
    """All numbers of a row, those that are means of its own numbers with them.

    Args:
        row: of `published`.
    """
    printed = {key: Number(Decimal(text), text, False) for key, text in row.values.items()}
    return printed | {key: Number(value, mean_text(value), True) for key, value in row.means.items()}


@functools.cache
def differences() -> tuple[SeveralNumbers, ...]:
    """Every method, benchmark and metric for which sources give numbers that differ, method by method.

    Versions that one table tells apart by name or backbone are not counted, nor are rows whose stated
    backbones differ, nor what rounding explains.

    Example:
        >>> found = {(one.method, one.benchmark, one.metric): one for one in differences()}
        >>> one = found["SPRC", "fashioniq/val", "mean(recall@10, recall@50)"]
        >>> [number.text for _, number in one.numbers]
        ['64.85', '62.135']
    """
    held: dict[tuple[str, str, str], list[tuple[Reported, Number]]] = {}
    for row in published():
        for (benchmark, metric), number in numbers_of(row).items():
            held.setdefault((_key(row), benchmark, metric), []).append((row, number))
    found = [
        _difference(method, benchmark, metric, apart)
        for (method, benchmark, metric), rows in held.items()
        if (apart := _apart(rows))
    ]
    return tuple(sorted(found, key=lambda one: one.method.casefold()))


def _difference(key: str, benchmark: str, metric: str, rows: list[tuple[Reported, Number]]) -> SeveralNumbers:
    ordered = tuple(sorted(rows, key=lambda one: -one[1].value))
    # The shortest spelling is the name without what a source adds to it.
    name = min((row.names[-1] for row, _ in rows), key=len)
    return SeveralNumbers(
        name, benchmark, metric, ordered, _explanations().get((key, benchmark), UNEXPLAINED)
    )


def _key(row: Reported) -> str:
    return row.names[-1].casefold()


def _apart(rows: list[tuple[Reported, Number]]) -> list[tuple[Reported, Number]]:
    """Those of the rows that differ from another one, for no reason that the rows themselves give."""
    found: list[tuple[Reported, Number]] = []
    for one, other in combinations(rows, 2):
        if _are_told_apart(one[0], other[0]) or _is_same(one[1], other[1]):
            continue
        if _is_elsewhere(one, other, rows) or _is_elsewhere(other, one, rows):
            continue
        found += [each for each in (one, other) if each not in found]
    return found


def _are_told_apart(one: Reported, other: Reported) -> bool:
    """Whether their table, or the backbones that they state, say that these are two models."""
    table = (one.source, one.table) == (other.source, other.table)
    named = (one.method.casefold(), one.backbone) != (other.method.casefold(), other.backbone)
    backbones = (_backbone(one), _backbone(other))
    return (table and named) or (all(backbones) and backbones[0] != backbones[1])


def _is_elsewhere(
    one: tuple[Reported, Number], other: tuple[Reported, Number], rows: list[tuple[Reported, Number]]
) -> bool:
    """Whether the other's table has `one`'s number for another version: then `one` is that version."""
    return any(
        (row.source, row.table) == (other[0].source, other[0].table)
        and row is not other[0]
        and (row.source, row.table) != (one[0].source, one[0].table)
        and _is_same(number, one[1])
        for row, number in rows
    )


def _backbone(row: Reported) -> str:
    named = _BACKBONE.search(row.backbone) or _BACKBONE.search(row.method)
    return named.group() if named else ""


def _is_same(one: Number, other: Number) -> bool:
    """Whether two numbers may be one that was rounded."""
    errors = (_MEAN_ERROR if each.is_derived else _half_unit(each.value) for each in (one, other))
    return abs(one.value - other.value) <= max(errors)


def _half_unit(printed: Decimal) -> Decimal:
    """Half of the last digit's unit, which is how far rounding moves a printed number."""
    return Decimal(1).scaleb(int(printed.as_tuple().exponent)) / 2


@functools.cache
def _explanations() -> dict[tuple[str, str], str]:
    return dict(_read_explanations())


def _read_explanations() -> Iterator[tuple[tuple[str, str], str]]:
    for one in own_yaml("cir_datasets", "registry/published_explanations.yaml"):
        for benchmark in one["benchmarks"]:
            yield (one["method"].casefold(), benchmark), one["why"].strip()
