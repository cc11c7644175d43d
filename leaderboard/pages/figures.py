"""How pages write numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Unit = Literal["percent", "rank"]
_SMALLEST = 0.00005
"""Fractions below round to 0.00 %."""


def number(value: float | None, unit: Unit, step: float = 0.01) -> str:
    """A metric's value in a table: per cent with two decimals, ranks with one, or fewer of a coarser step.

    Args:
        value: a fraction or a rank; None where it is not known.
        unit: which of the two.
        step: in which it is told, in per cent or in ranks.

    Example:
        >>> number(0.49833, "percent"), number(12.34, "rank"), number(None, "percent")
        ('49.83', '12.3', '–')
        >>> number(0.35, "percent", 5.0), number(0.355, "percent", 0.5)
        ('35', '35.5')
    """
    if value is None:
        return "–"
    digits = len(f"{step:g}".partition(".")[2])
    return f"{100 * value:.{min(digits, 2)}f}" if unit == "percent" else f"{value:,.{min(digits, 1)}f}"


def chance(value: float | None, unit: Unit) -> str:
    """As `number`, for chance levels: one that is not 0 is not written so.

    Args:
        value: a fraction or a rank; None where it is not known.
        unit: which of the two.

    Example:
        >>> chance(0.00002, "percent"), chance(0.01, "percent")
        ('<0.01', '1.00')
    """
    small = unit == "percent" and value is not None and 0 < value < _SMALLEST
    return "<0.01" if small else number(value, unit)


def with_interval(value: float, interval: Sequence[float] | None, unit: Unit, step: float = 0.01) -> str:
    """A value with its 95 % interval, where it has one.

    Args:
        value: a fraction or a rank.
        interval: low and high end, or None.
        unit: of all three.
        step: as in `number`.

    Example:
        >>> with_interval(0.5, (0.45, 0.55), "percent"), with_interval(0.5, None, "percent")
        ('50.00 [45.00, 55.00]', '50.00')
    """
    if interval is None:
        return number(value, unit, step)
    low, high = (number(end, unit) for end in interval)
    return f"{number(value, unit)} [{low}, {high}]"
