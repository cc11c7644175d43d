"""What a run would ask of models, in a file of its own: it is the paper's shares, and runs no stage."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cir_datasets.common.estimates import ANSWER_TOKENS, Calls, calls_table
from cir_datasets.common.terminal import Table
from cir_datasets.construction.workspace import FAILED, Row
from cir_datasets.construction.zerosight.references import WINDOW

TARGETS = 16.05
"""A reference, in the paper: 5.16 positives and 10.89 hard negatives."""
CHOSEN = 0.5
"""Share of windows that give a reference that is kept; an assumption."""
_WORDS = {"choosing references": 180, "candidate captions": 220, "final captions": 250}


def estimates(videos: Sequence[Row], tokens_a_picture: int) -> list[Calls]:
    """What a run asks, by its kinds of questions; windows are the most that there can be.

    Args:
        videos: rows of the stage `videos`.
        tokens_a_picture: of the model; 85 is the default.

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
        Calls(what, calls, calls * (_WORDS[what] + pictures * tokens_a_picture), calls * ANSWER_TOKENS)
        for what, calls, pictures in asked
    ]


def estimate_table(found: Sequence[Calls], seconds_a_call: float, concurrency: int) -> Table:
    """The estimates as a table, with hours."""
    assumed = f"half of the windows give a reference, and each has the paper's {TARGETS} targets"
    return calls_table(assumed, found, seconds_a_call, concurrency)
