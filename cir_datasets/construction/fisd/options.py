"""What a run is asked for, and the aspects that it may be made of."""

from __future__ import annotations

from cir_datasets.common.options import Options, check_values, option
from cir_metrics.errors import CallError

CARDINALITY, COMPLEX = "cardinality", "complex"
ASPECTS = (CARDINALITY, "addition", "negation", "change", "background", COMPLEX)
"""In the paper's order."""


class FisdOptions(Options):
    """What is made.

    Args:
        per_aspect: queries wanted of each aspect, 1 or more.
        spare: captions more of each, for those that fail or are dropped, 0 or more.
        seed: of all that is drawn.
        limit: triplets in all, for a first look; None for all.
        chunk: triplets whose pictures are drawn and kept at once, 1 or more.
        reviewed_only: whether triplets that nobody has decided on are left out.

    Raises:
        CallError: a number is out of range.
    """

    per_aspect: int = option(200, "Queries wanted of each aspect.", min=1)
    spare: int = option(20, "Triplets more of each, for those that fail or are dropped.", min=0)
    seed: int = option(0, "Seed, a whole number from 0, of all that is drawn.", min=0)
    limit: int | None = option(
        None, "At most so many: triplets in all, spread over the aspects; default: no limit.", min=1
    )
    chunk: int = option(8, "Triplets whose pictures are drawn and kept at once.", min=1, in_file=True)
    reviewed_only: bool = option(False, "Leave out triplets that nobody has decided on.", in_file=True)

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_values(self, CallError)
