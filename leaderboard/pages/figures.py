"""How pages write numbers."""

from __future__ import annotations

from typing import Literal

Unit = Literal["percent", "rank"]


def number(value: float | None, unit: Unit) -> str:
    """A metric's value in a table: per cent with two decimals, ranks with one.

    Example:
        >>> number(0.49833, "percent"), number(12.34, "rank"), number(None, "percent")
        ('49.83', '12.3', '–')
    """
    if value is None:
        return "–"
    return f"{100 * value:.2f}" if unit == "percent" else f"{value:,.1f}"
