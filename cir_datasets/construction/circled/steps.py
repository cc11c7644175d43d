"""The arithmetic of a turn, for all sessions at once: which image is picked, and how the query moves on.

Equations 5, 6 and 9 of CIRCLED. Sums are in double precision and in numpy's own order, and similarities are
compared after six digits, so that a pick does not depend on the last bit of a vector.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cir_datasets.construction.circled.settings import CircledSettings

DIGITS = 6
_BLOCK = 1024
"""Sessions whose shown vectors are held at once."""
Vectors = NDArray[np.float32]


def similarities(first: NDArray[np.floating], second: NDArray[np.floating]) -> NDArray[np.float64]:
    """The inner product of each pair of rows, rounded.

    Args:
        first: shape (..., dimensions), rows of length 1.
        second: the same shape, or one that is broadcast to it.

    Example:
        >>> similarities(np.array([[1.0, 0.0]]), np.array([[0.6, 0.8]])).tolist()
        [0.6]
    """
    found: NDArray[np.float64] = np.add.reduce(
        np.asarray(first, np.float64) * np.asarray(second, np.float64), axis=-1
    )
    return found.round(DIGITS)


def unit(vectors: NDArray[np.floating]) -> Vectors:
    """Rows brought to length 1, as float32; a row of zeros stays one.

    Example:
        >>> unit(np.array([[3.0, 4.0]])).round(3).tolist()
        [[0.6000000238418579, 0.800000011920929]]
    """
    wide = np.asarray(vectors, np.float64)
    lengths = np.sqrt(np.add.reduce(wide * wide, axis=-1))[..., None]
    scaled: NDArray[np.float64] = np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths != 0)
    return scaled.astype(np.float32)


def picks(
    shown: ArrayLike, allowed: ArrayLike, aims: Vectors, captions: Vectors
) -> list[tuple[int, float] | None]:
    """The image that each user picks among those shown: the one whose caption is nearest to the target's.

    y+ = argmax over y in Y without I_1 .. I_(l-1) of cos(E(caption(Z)), E(caption(y)))

    Args:
        shown: number of the caption of each image shown, best first, shape (sessions, images); any number
            where there is none.
        allowed: whether each may be picked, of the same shape.
        aims: vector of each session's target caption, shape (sessions, dimensions).
        captions: vectors of captions, by number.

    Returns:
        By session the place among those shown and the similarity; the better ranked where two are equal;
        None where none may be picked.

    Example:
        >>> captions = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], np.float32)
        >>> picks([[0, 1, 2]], [[False, True, True]], captions[:1], captions)
        [(1, 0.6)]
    """
    numbers, may = np.asarray(shown, np.int64), np.asarray(allowed, np.bool_)
    found: list[tuple[int, float] | None] = [None] * len(numbers)
    able = np.flatnonzero(may.any(axis=1)) if len(may) else np.zeros(0, np.int64)
    for start in range(0, len(able), _BLOCK):
        places = able[start : start + _BLOCK]
        near = similarities(captions[numbers[places]], aims[places][:, None])
        near[~may[places]] = -np.inf
        best = near.argmax(axis=1)
        picked = near[np.arange(len(places)), best]
        for place, one, similar in zip(places.tolist(), best.tolist(), picked.tolist(), strict=True):
            found[place] = (one, similar)
    return found


def moved_on(
    before: Vectors,
    picked: NDArray[np.int64],
    shown: NDArray[np.int64],
    said: Vectors,
    gallery: Vectors,
    settings: CircledSettings,
) -> Vectors:
    """The next query of each session.

    v <- norm(v + alpha y+ - beta mean(y-) + gamma h), equation 9; the mean keeps its length. The paper does
    not state the weights; the released code has 0.08, 0.29 and 0.44.

    Args:
        before: the queries so far, rows of length 1, shape (sessions, dimensions).
        picked: gallery row of each reference, y+; -1 where the gallery lacks it.
        shown: gallery rows of the images shown, shape (sessions, k); y- are those but the picked.
        said: vectors of the merged captions, h.
        gallery: vectors of the gallery, rows of length 1.
        settings: the weights.

    Example:
        >>> gallery = np.eye(3, dtype=np.float32)
        >>> row = np.array([[0, 1]])
        >>> moved_on(gallery[:1], row[:, 0], row, gallery[2:], gallery, CircledSettings()).round(3).tolist()
        [[0.8989999890327454, -0.2409999966621399, 0.3659999966621399]]
    """
    found = np.zeros_like(before)
    for start in range(0, len(before), _BLOCK):
        part = slice(start, start + _BLOCK)
        chosen = gallery[picked[part]] * (picked[part] >= 0)[:, None].astype(np.float64)
        others = shown[part] != picked[part, None]
        seen = gallery[shown[part]].astype(np.float64) * others[..., None]
        rejected = np.add.reduce(seen, axis=1) / np.maximum(1, others.sum(axis=1))[:, None]
        found[part] = unit(
            before[part].astype(np.float64)
            + settings.selected * chosen
            - settings.rejected * rejected
            + settings.words * said[part].astype(np.float64)
        )
    return found
