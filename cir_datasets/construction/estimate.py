"""What a run would ask of a language model, before anything is asked: calls, tokens, hours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cir_datasets.common.tables import Cell, Table

PICTURE_TOKENS = 85
"""Of a small picture, as in the low detail of OpenAI's older models; servers count pictures differently."""
CHARACTERS = 4
"""About those of a token of English."""
CALL_SECONDS = 1.5
"""About what an answer takes."""
_HOUR = 3600


class Calls(NamedTuple):
    """One kind of question."""

    what: str
    calls: int
    tokens_in: int
    tokens_out: int


def hours(calls: int, seconds: float, at_once: int) -> float:
    """How long calls take.

    Args:
        calls: their number.
        seconds: of each.
        at_once: how many are open at the same time, from 1.

    Example:
        >>> hours(7200, 1.5, 3)
        1.0
    """
    return calls * seconds / at_once / _HOUR


def calls_table(title: str, found: Sequence[Calls], seconds: float, at_once: int) -> Table:
    """A row a kind of question, and one of all together.

    Args:
        title: what the estimate assumes, beside seconds and calls at once.
        found: the kinds.
        seconds: of a call.
        at_once: calls that are open at the same time.
    """
    whole = Calls("together", *(sum(column) for column in zip(*(each[1:] for each in found), strict=True)))
    rows = [
        (
            Cell(each.what),
            *(Cell(f"{number:,}") for number in each[1:]),
            Cell(f"{hours(each.calls, seconds, at_once):,.2f}"),
        )
        for each in (*found, whole)
    ]
    return Table(
        f"Estimate: {seconds:g} seconds a call, {at_once} at once; {title}",
        ("what", "calls", "tokens in", "tokens out", "hours"),
        tuple(rows),
    )
