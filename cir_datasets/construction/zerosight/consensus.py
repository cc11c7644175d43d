"""Which captions agree: the paper's rule (Eq. 3-5) and the one of the released code."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cir_datasets.construction.zerosight.choices import Consensus
from cir_datasets.construction.zerosight.likeness import DIGITS


@dataclass(frozen=True)
class Agreed:
    """The captions that agree.

    Args:
        centre: place of the caption that the others agree with.
        members: places of all that agree, the centre among them, in order.
        value: k of the centre, or the mean similarity to its neighbours.
    """

    centre: int
    members: tuple[int, ...]
    value: float


def agreed(table: NDArray[np.float64], rule: Consensus, neighbour: float = 0.59) -> Agreed | None:
    """What captions agree on, by either rule.

    Args:
        table: similarities, shape (n, n), symmetric, n at least 2; what stands on the diagonal is not read.
        rule: `paper` or `released`.
        neighbour: from which similarity on two captions are neighbours; of `released` alone.

    Returns:
        None where no caption has a neighbour; the paper's rule always finds one.

    Example:
        >>> table = np.array([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]])
        >>> agreed(table, "paper")
        Agreed(centre=0, members=(0, 1), value=0.5)
    """
    return _paper(table) if rule == "paper" else _released(table, neighbour)


def k_of(others: NDArray[np.float64]) -> float:
    """The largest eps for which the share of others that are as similar as eps is at least eps (Eq. 3).

    Between two shares only a similarity itself can be the largest, so that k is the best of min(the c-th
    similarity, c / n), and 0 where all are below: an h-index.

    Args:
        others: similarities to all others, shape (n,).

    Example:
        >>> k_of(np.array([0.9, 0.6, 0.3, 0.2]))
        0.5
    """
    ordered = np.sort(others)[::-1]
    shares = np.arange(1, len(ordered) + 1) / len(ordered)
    return float(max(0.0, np.minimum(ordered, shares).max()))


def _paper(table: NDArray[np.float64]) -> Agreed:
    """The caption of the largest k, the first of several; with it all that are as similar to it as k."""
    values = [k_of(np.delete(row, place)) for place, row in enumerate(table)]
    centre = int(np.argmax(values))
    members = [
        place for place in range(len(table)) if place == centre or table[centre, place] >= values[centre]
    ]
    return Agreed(centre, tuple(members), values[centre])


def _released(table: NDArray[np.float64], neighbour: float) -> Agreed | None:
    """The caption whose neighbours are most similar to it in the mean, of several the one with most."""
    best: tuple[float, int, int] | None = None
    for place, row in enumerate(table):
        near = [other for other in range(len(table)) if other != place and row[other] >= neighbour]
        if near:
            # As all similarities: six digits, so that equal means are equal whatever their number.
            mean = round(math.fsum(row[near]) / len(near), DIGITS)
            if best is None or (mean, len(near)) > best[:2]:
                best = (mean, len(near), place)
    if best is None:
        return None
    centre = best[2]
    members = [place for place in range(len(table)) if place == centre or table[centre, place] >= neighbour]
    return Agreed(centre, tuple(members), best[0])
