"""What a run is asked for, and the aspects that it may be made of."""

from __future__ import annotations

from dataclasses import dataclass

from cir_metrics.errors import CallError

CARDINALITY, COMPLEX = "cardinality", "complex"
ASPECTS = (CARDINALITY, "addition", "negation", "change", "background", COMPLEX)
"""In the paper's order."""


@dataclass(frozen=True)
class FisdOptions:
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

    per_aspect: int = 200
    spare: int = 20
    seed: int = 0
    limit: int | None = None
    chunk: int = 8
    reviewed_only: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        low = {"per_aspect": 1, "spare": 0, "seed": 0, "limit": 1, "chunk": 1}
        for name, least in low.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise CallError(f"{name}={value}; it is {least} or more. Fix: choose it so.")
