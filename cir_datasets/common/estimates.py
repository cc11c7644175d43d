"""What a run would ask of a language model, before anything is asked: calls, tokens, hours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cir_datasets.common.terminal import Cell, Table

PICTURE_TOKENS = 85
"""Of a small picture, as in the low detail of OpenAI's older models; servers count pictures differently."""
ANSWER_TOKENS = 40
"""About those of a sentence or two."""
CHARACTERS = 4
"""About those of a token of English."""
CALL_SECONDS = 1.5
"""About what an answer takes."""
_HOUR = 3600


class Calls(NamedTuple):
    """One kind of question, as many of them as there can be.

    Args:
        what: its name.
        calls: how many; equal ones are asked once, and none that has an answer on disk.
        tokens_in: of all questions.
        tokens_out: of all answers.
    """

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


def calls_values(found: Sequence[Calls], seconds: float, at_once: int) -> list[dict[str, Any]]:
    """The kinds of question as JSON values, with hours.

    Args:
        found: the kinds.
        seconds: of a call.
        at_once: calls that are open at the same time.

    Example:
        >>> calls_values([Calls("captions", 7200, 100, 50)], 1.5, 3)[0]["hours"]
        1.0
    """
    return [{**each._asdict(), "hours": hours(each.calls, seconds, at_once)} for each in found]


def calls_table(title: str, found: Sequence[Calls], seconds: float, at_once: int) -> Table:
    """A row a kind of question, and one of all together; no row where nothing is asked.

    Args:
        title: what the estimate assumes, beside seconds and calls at once.
        found: the kinds.
        seconds: of a call.
        at_once: calls that are open at the same time.

    Example:
        >>> calls_table("one a photo", [], 1.5, 3).rows
        ()
    """
    whole = Calls(
        "together",
        sum(each.calls for each in found),
        sum(each.tokens_in for each in found),
        sum(each.tokens_out for each in found),
    )
    rows = [
        (
            Cell(each.what),
            *(Cell(f"{number:,}") for number in each[1:]),
            Cell(f"{hours(each.calls, seconds, at_once):,.2f}"),
        )
        for each in ((*found, whole) if found else ())
    ]
    return Table(
        f"Estimate: {seconds:g} seconds a call, {at_once} at once; {title}",
        ("what", "calls", "tokens in", "tokens out", "hours"),
        tuple(rows),
    )
