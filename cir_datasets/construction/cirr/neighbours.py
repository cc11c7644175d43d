"""The images that the rule looks at, for many first images at once and in bounded memory.

A block of matrix products in float32 says of nearly all images that they are out of question. What lies
within the products' error of a limit is decided on exact similarities (`rule.similarities`), so that the
same images are found whatever the block, the number of threads and the library behind the product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cir_datasets.construction.cirr.rule import Whole, similarities
from cir_datasets.construction.cirr.subset_rule import SubsetRule
from cir_datasets.errors import ConstructionError

MEMORY = 64 * 2**20
"""Bytes of the products that are held at once."""

_ROWS = 8192
"""Features that are read at once."""
_MOST = 256
"""First images of a block at most."""

Vectors = NDArray[np.float32]


def neighbours(
    features: Vectors, firsts: Sequence[int], rule: SubsetRule, *, memory: int = MEMORY
) -> Iterator[tuple[int, Whole, Whole]]:
    """Of each first image the images that the rule looks at, the most similar first.

    Args:
        features: shape (n, dimensions); a memory map is read in blocks.
        firsts: rows of the first images.
        rule: the rule.
        memory: bytes of the products that are held at once; nothing that is found depends on it.

    Yields:
        Row of the first image, rows of the `rule.ranked` most similar images below `rule.alike` (fewer where
        there are not so many), and their similarities in steps of 10^-12. Equal ones go by row.

    Raises:
        ConstructionError: a feature holds a value that is not finite.
    """
    lengths = _lengths(features)
    size = max(1, min(_MOST, memory // (4 * max(1, len(features)))))
    error = _error(features.shape[1])
    for at in range(0, len(firsts), size):
        block = np.asarray(firsts[at : at + size], np.int64)
        products = _products(features, lengths, block)
        for first, row in zip(block.tolist(), products, strict=True):
            row[first] = -np.inf
            candidates = _candidates(row, rule, error)
            exact = similarities(features[first], features[candidates])
            below = exact < rule.alike_steps
            candidates, exact = candidates[below], exact[below]
            order = np.lexsort((candidates, -exact))[: rule.ranked]
            yield first, candidates[order], exact[order]
        # Else a block's products are held while the next one's are made.
        del products, row


def _products(features: Vectors, lengths: Vectors, block: NDArray[np.int64]) -> Vectors:
    """Cosines of some images with all, to float32's precision, shape (len(block), n)."""
    queries = features[block] / lengths[block, None]
    found = np.empty((len(block), len(features)), np.float32)
    for at in range(0, len(features), _ROWS):
        there = slice(at, at + _ROWS)
        np.matmul(queries, features[there].T, out=found[:, there])
        found[:, there] /= lengths[there]
    return found


def _lengths(features: Vectors) -> Vectors:
    """Length of each feature; of one that is zero 1, so that its cosines are 0."""
    found = np.ones(len(features), np.float32)
    for at in range(0, len(features), _ROWS):
        rows = features[at : at + _ROWS]
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        if not np.isfinite(squares).all():
            raise ConstructionError(
                "features hold values that are not finite. Fix: make them anew with another --encoder or "
                "--dtype."
            )
        found[at : at + _ROWS] = np.where(squares > 0, np.sqrt(squares), 1)
    return found


def _candidates(row: NDArray[np.float32], rule: SubsetRule, error: float) -> NDArray[np.int64]:
    """Rows that may be among those looked at: below the limit, and down to the last that counts."""
    surely = row[row < rule.alike - error]
    wanted = rule.ranked
    lowest = -2.0
    if len(surely) > wanted:
        lowest = float(np.partition(surely, len(surely) - wanted)[len(surely) - wanted]) - 2 * error
    return np.flatnonzero((row >= lowest) & (row < rule.alike + error))


def _error(dimensions: int) -> float:
    """More than a product in float32 of two features of length 1 can be wrong, in any order of its terms."""
    return (dimensions + 16) * 2.0**-23
