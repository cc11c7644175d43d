"""Which images make a subset with a first one: CIRR, section 4.1, on whole numbers.

A similarity is the cosine of two features, correctly rounded to 12 decimals and held as a whole number of
10^-12. Whether it is 0.94 or more, or within 0.002 of another, is decided on those, so that it depends on the
two features alone: not on the processor, the block, or the order of the folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.construction.cirr.subset_rule import UNIT, SubsetRule
from cir_metrics.sums import exact_sums

_AT_ONCE = 1024
"""Pairs whose terms are held at once."""

Whole = NDArray[np.int64]


def chosen(similarities: Sequence[int], rule: SubsetRule) -> list[int]:
    """Places of the images that are added to the first one, fewer than the rule's where there are not enough.

    Args:
        similarities: to the first image in steps of 10^-12, the largest first, without the image itself.
        rule: the rule.

    Example:
        >>> found = [int(each * 10**12) for each in (0.95, 0.94, 0.93, 0.928, 0.9279, 0.8)]
        >>> chosen(found, SubsetRule(size=4, ranked=3))
        [2, 4]
    """
    start = next((at for at, each in enumerate(similarities) if each < rule.alike_steps), len(similarities))
    added: list[int] = []
    for place in range(start, min(start + rule.ranked, len(similarities))):
        if added and similarities[added[-1]] - similarities[place] <= rule.apart_steps:
            continue
        added.append(place)
        if len(added) == rule.size - 1:
            break
    return added


def similarities(first: NDArray[np.floating[Any]], others: NDArray[np.floating[Any]]) -> Whole:
    """Cosines of a feature with others, in steps of 10^-12.

    cos(a, b) = sum_i a_i b_i / sqrt(sum_i a_i^2 * sum_i b_i^2)

    Products of float32 are exact in double precision, and so is what `exact_sums` makes of them but for one
    rounding; the same two features give the same number everywhere.

    Args:
        first: shape (dimensions,).
        others: shape (n, dimensions).

    Returns:
        Shape (n,); 0 where a feature is zero.

    Example:
        >>> similarities(np.array([50.0, 0, 0, 0]), np.array([[47.0, 17, 1, 1]]))
        array([940000000000])
    """
    one = first.astype(np.float64)
    own = float(exact_sums((one * one)[:, None])[0])
    found = np.empty(len(others), np.int64)
    for at in range(0, len(others), _AT_ONCE):
        many = others[at : at + _AT_ONCE].astype(np.float64)
        dots = exact_sums((many * one).T)
        lengths = np.sqrt(exact_sums((many * many).T) * own)
        cosines = np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)
        found[at : at + _AT_ONCE] = np.rint(np.clip(cosines, -1, 1) * UNIT).astype(np.int64)
    return found


def faults(members: Sequence[int], features: NDArray[np.floating[Any]], rule: SubsetRule) -> Iterator[str]:
    """Every way in which a subset breaks the rule, found without any of the shortcuts of `neighbours`.

    Args:
        members: rows of its images in the order in which they were added, the first image first.
        features: of all images it was drawn from, shape (n, dimensions); equal similarities go by row.
        rule: the rule.
    """
    first, *others = members
    if len(members) != rule.size or len(set(members)) != rule.size:
        yield f"it has {len(set(members))} different images, not {rule.size}"
        return
    rows = np.array([row for row in range(len(features)) if row != first])
    values = similarities(features[first], features[rows])
    order = np.lexsort((rows, -values))
    expected = [int(rows[order[place]]) for place in chosen(values[order].tolist(), rule)]
    if expected != others:
        yield f"the rule adds images {expected} to image {first}, and it has {others}"
