"""Who is too like whom, and who is like enough: thresholds over similarities, in blocks.

A similarity is the cosine of two float32 vectors of length 1, rounded to six digits. Blocks are matrix
products in float32; where such a product is near a threshold, the sum is made again in float64, so that what
is decided does not depend on the processor, and is what the written number says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cir_datasets.construction.zerosight.options import Thresholds

DIGITS = 6
_NEAR = 1e-4
_UNSURE = 1e-9
_BLOCK = 2048
_REFERENCES = 256
_FRAMES = 8192

Vectors: TypeAlias = NDArray[np.float32]
Cosines: TypeAlias = NDArray[np.float64]


def cosines(first: Vectors, second: Vectors, limits: Sequence[float]) -> Cosines:
    """Similarities of all pairs, good enough to be compared with the limits.

    Args:
        first: shape (n, dimensions), rows of length 1.
        second: shape (m, dimensions), rows of length 1.
        limits: what they will be compared with; only near these are they rounded to six digits.

    Returns:
        Shape (n, m).
    """
    found = (first @ second.T).astype(np.float64)
    near = np.zeros(found.shape, bool)
    for limit in limits:
        near |= np.abs(found - limit) <= _NEAR
    rows, columns = np.nonzero(near)
    for at in range(0, len(rows), _BLOCK):
        here = slice(at, at + _BLOCK)
        found[rows[here], columns[here]] = similar(first[rows[here]], second[columns[here]])
    return found


def similar(first: Vectors, second: Vectors) -> Cosines:
    """Similarities of the rows beside each other, rounded to six digits, on every machine the same.

    Example:
        >>> similar(np.float32([[0.6, 0.8]]), np.float32([[1, 0]])).tolist()
        [0.6]
    """
    blocks = [
        _similar(first[at : at + _BLOCK], second[at : at + _BLOCK]) for at in range(0, len(first), _BLOCK)
    ]
    return np.concatenate(blocks) if blocks else np.zeros(0)


def _similar(first: Vectors, second: Vectors) -> Cosines:
    # Products of two float32 numbers are exact in float64; only their sum depends on its order.
    products = np.asarray(first, np.float64) * np.asarray(second, np.float64)
    sums = products.sum(axis=1)
    scaled = sums * 10**DIGITS
    unsure = np.abs(scaled - np.floor(scaled) - 0.5) < _UNSURE * 10**DIGITS
    for row in np.nonzero(unsure)[0]:
        sums[row] = math.fsum(products[row])
    rounded: Cosines = np.round(sums, DIGITS)
    return rounded


def too_like(vectors: Vectors, places: Sequence[int], limit: float) -> list[int | None]:
    """For each place the first kept place before it that is as like it as the limit, or None: it is kept.

    Args:
        vectors: shape (n, dimensions), rows of length 1; may be a file that is mapped into memory.
        places: rows of the vectors, in order.
        limit: from this similarity on the later one goes.

    Example:
        >>> too_like(np.float32([[1, 0], [0.8, 0.6], [0, 1]]), [0, 1, 2], 0.7)
        [None, 0, None]
    """
    found: list[int | None] = []
    kept: list[int] = []
    for start in range(0, len(places), _BLOCK):
        here = list(places[start : start + _BLOCK])
        rows = np.asarray(vectors[here])
        like: list[int | None] = [None] * len(here)
        for at in range(0, len(kept), _BLOCK):
            others = kept[at : at + _BLOCK]
            alike = cosines(rows, np.asarray(vectors[others]), [limit]) >= limit
            for row in map(int, np.nonzero(alike.any(axis=1))[0]):
                if like[row] is None:
                    like[row] = others[int(alike[row].argmax())]
        inside = cosines(rows, rows, [limit]) >= limit
        stays = np.zeros(len(here), bool)
        for row in range(len(here)):
            if like[row] is None:
                earlier = inside[row] & stays
                first = int(earlier.argmax())
                if earlier[first]:
                    like[row] = here[first]
                else:
                    stays[row] = True
        kept += [here[row] for row in np.flatnonzero(stays)]
        found += like
    return found


def in_bands(
    references: Sequence[int], visual: Vectors, semantic: Vectors, thresholds: Thresholds
) -> Iterator[tuple[int, list[int]]]:
    """For each reference the frames whose two similarities to it lie in their bands, in order.

    Memory is bounded: a block of references by a block of frames at a time, whatever their number.

    Args:
        references: rows of the vectors.
        visual: shape (frames, dimensions); may be a file that is mapped into memory.
        semantic: as `visual`, of the other encoder.
        thresholds: the bands.
    """
    for at in range(0, len(references), _REFERENCES):
        some = list(references[at : at + _REFERENCES])
        found: list[list[int]] = [[] for _ in some]
        for start in range(0, len(visual), _FRAMES):
            frames = slice(start, start + _FRAMES)
            fits = _within(visual, some, frames, thresholds.target_visual)
            if fits.any():
                fits &= _within(semantic, some, frames, thresholds.target_semantic)
            for row, frame in zip(*np.nonzero(fits), strict=True):
                if start + frame != some[row]:
                    found[row].append(int(start + frame))
        yield from zip(some, found, strict=True)


def _within(
    vectors: Vectors, references: list[int], frames: slice, band: tuple[float, float]
) -> NDArray[np.bool_]:
    low, high = band
    alike = cosines(np.asarray(vectors[references]), np.asarray(vectors[frames]), band)
    within: NDArray[np.bool_] = (alike >= low) & (alike <= high)
    return within
