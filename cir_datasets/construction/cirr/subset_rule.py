"""The numbers of CIRR's rule of subsets, as the command and a Python call give them."""

from __future__ import annotations

from decimal import Decimal

from cir_datasets.common.options import Options, option
from cir_metrics.errors import CallError

UNIT = 10**12
"""Steps of a similarity in 1."""


class SubsetRule(Options):
    """The rule of subsets; similarities are to the first image.

    Args:
        size: images of a subset.
        alike: an image that is at least as similar is left out: it shows the same.
        apart: an image whose similarity is within this of the last one added is skipped.
        ranked: of what is left so many are looked at, the most similar first.

    Raises:
        CallError: a number is out of range.
    """

    size: int = option(6, "Images of a subset.", in_file=True)
    alike: float = option(
        0.94,
        "An image as similar as this to the first one shows the same: left out.",
        in_file=True,
    )
    apart: float = option(
        0.002,
        "An image this close to the last one added, in similarity to the first one, is skipped.",
        in_file=True,
    )
    ranked: int = option(20, "Images that are looked at below `alike`, most similar first.", in_file=True)

    def __post_init__(self) -> None:
        """Refuse numbers that no subset could obey."""
        if self.size < 3 or self.ranked < self.size - 1:
            raise CallError(
                f"size={self.size}: subsets of {self.size} images out of the next {self.ranked}. "
                "Fix: 3 images or more, and at least as many to look at as are added."
            )
        if not (-1 < self.alike <= 1 and 0 <= self.apart < 1):
            raise CallError(
                f"limits {self.alike} and {self.apart}. Fix: the first lies between -1 and 1, the second "
                "between 0 and 1."
            )

    @property
    def alike_steps(self) -> int:
        """`alike` in steps of a similarity, as it is written in decimals."""
        return _steps(self.alike)

    @property
    def apart_steps(self) -> int:
        """`apart` in steps of a similarity."""
        return _steps(self.apart)


def _steps(number: float) -> int:
    # By its decimals: 0.002 as a double is a little more.
    return int(Decimal(str(number)) * UNIT)
