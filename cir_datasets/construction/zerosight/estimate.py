"""What a run would ask of models: calls, tokens and hours, before anything is asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from cir_datasets.common.tables import Cell, Table
from cir_datasets.construction.workspace import FAILED, Row
from cir_datasets.construction.zerosight.references import WINDOW

TARGETS = 16.05
"""A reference, in the paper: 5.16 positives and 10.89 hard negatives."""
CHOSEN = 0.5
"""Share of windows that give a reference that is kept; an assumption."""
_WORDS = {"choosing references": 180, "candidate captions": 220, "final captions": 250}
_ANSWER = 40


class Calls(NamedTuple):
    """One kind of question."""

    what: str
    calls: int
    tokens_in: int
    tokens_out: int


def estimates(videos: Sequence[Row], tokens_a_picture: int) -> list[Calls]:
    """What a run asks, by its kinds of questions; windows are the most that there can be.

    Args:
        videos: rows of the stage `videos`.
        tokens_a_picture: of the model; 85 is the low detail of OpenAI's older models.

    Example:
        >>> estimates([{"seconds": 95.0}], 85)[0]
        Calls(what='choosing references', calls=11, tokens_in=11330, tokens_out=440)
    """
    frames = [max(1, math.ceil(float(row.get("seconds") or 1))) for row in videos if not row.get(FAILED)]
    # At most: after a pick nine new frames make a window.
    windows = sum(max(1, math.ceil((number - 1) / (WINDOW - 1))) for number in frames)
    references = math.ceil(windows * CHOSEN)
    pairs = math.ceil(references * TARGETS)
    asked = (
        ("choosing references", windows, WINDOW),
        ("candidate captions", pairs, 2),
        ("final captions", references, 0),
    )
    return [
        Calls(what, calls, calls * (_WORDS[what] + pictures * tokens_a_picture), calls * _ANSWER)
        for what, calls, pictures in asked
    ]


def estimate_table(found: Sequence[Calls], seconds_a_call: float, concurrency: int) -> Table:
    """The estimates as a table, with hours."""
    whole = Calls("together", *(sum(column) for column in zip(*(each[1:] for each in found), strict=True)))
    rows = [
        (
            Cell(each.what),
            Cell(f"{each.calls:,}"),
            Cell(f"{each.tokens_in:,}"),
            Cell(f"{each.tokens_out:,}"),
            Cell(f"{each.calls * seconds_a_call / concurrency / 3600:,.2f}"),
        )
        for each in (*found, whole)
    ]
    return Table(
        f"Estimate: {seconds_a_call:g} seconds a call, {concurrency} at once; half of the windows give a "
        f"reference, and each has the paper's {TARGETS} targets",
        ("what", "calls", "tokens in", "tokens out", "hours"),
        tuple(rows),
    )
