"""What a run would ask of models, in a file of its own: it is the paper's shares, and runs no stage."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cir_datasets.common.estimates import CALL_SECONDS, Estimate, questions
from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.zerosight.references import WINDOW

TARGETS = 16.05
"""A reference, in the paper: 5.16 positives and 10.89 hard negatives."""
CHOSEN = 0.5
"""Share of windows that give a reference that is kept; an assumption."""


def estimate(
    videos: Sequence[Row], picture_tokens: int, *, call_seconds: float = CALL_SECONDS, at_once: int = 1
) -> Estimate:
    """What a run asks, by its kinds of questions; windows are the most that there can be.

    Args:
        videos: rows of the stage `videos`.
        picture_tokens: of the model; 85 is the default.
        call_seconds: of a call.
        at_once: questions that the backend is asked at once.

    Example:
        >>> estimate([{"seconds": 95.0}], 85).work[0][:4]
        ('choosing references', 11, 11330, 440)
    """
    frames = [max(1, math.ceil(float(row.get("seconds") or 1))) for row in videos if not row.get(FAILED)]
    # At most: after a pick nine new frames make a window.
    windows = sum(max(1, math.ceil((number - 1) / (WINDOW - 1))) for number in frames)
    references = math.ceil(windows * CHOSEN)
    asked = (
        ("choosing references", windows, 180, WINDOW),
        ("candidate captions", math.ceil(references * TARGETS), 220, 2),
        ("final captions", references, 250, 0),
    )
    return Estimate(
        f"half of the windows give a reference, and each has the paper's {TARGETS} targets",
        [
            questions(what, calls, tokens=tokens, pictures=pictures, picture_tokens=picture_tokens)
            for what, calls, tokens, pictures in asked
        ],
        at_once=at_once,
        call_seconds=call_seconds,
    )
