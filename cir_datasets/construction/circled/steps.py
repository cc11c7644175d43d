"""The arithmetic of a turn, for all sessions at once: which image is picked, and how the query moves on.

Equations 5, 6 and 9 of CIRCLED. Sums are in double precision and in numpy's own order, and similarities are
compared after six digits, so that a pick does not depend on the last bit of a vector.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
    shown: Sequence[Sequence[int]], allowed: Sequence[Sequence[bool]], aims: Vectors, captions: Vectors
) -> list[tuple[int, float] | None]:
    """The image that each user picks among those shown: the one whose caption is nearest to the target's.

    y+ = argmax over y in Y without I_1 .. I_(l-1) of cos(E(caption(Z)), E(caption(y)))

    Args:
        shown: by session the rows of the images shown, best first.
        allowed: by session whether each may be picked.
        aims: vector of each session's target caption, shape (sessions, dimensions).
        captions: vectors of captions, by the numbers that `shown` holds.

    Returns:
        By session the place among those shown and the similarity; the better ranked where two are equal;
        None where none may be picked.

    Example:
        >>> captions = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], np.float32)
        >>> picks([[0, 1, 2]], [[False, True, True]], captions[:1], captions)
        [(1, 0.6)]
    """
    found: list[tuple[int, float] | None] = [None] * len(shown)
    able = [place for place, may in enumerate(allowed) if any(may)]
    for start in range(0, len(able), _BLOCK):
        # As many images are shown in every session, so that one product is of all.
        for _, alike in itertools.groupby(able[start : start + _BLOCK], key=lambda one: len(shown[one])):
            places = list(alike)
            images = captions[np.array([shown[place] for place in places])]
            near = similarities(images, aims[places][:, None])
            near[~np.array([allowed[place] for place in places])] = -np.inf
            best = near.argmax(axis=1)
            picked = near[np.arange(len(places)), best]
            for place, one, similar in zip(places, best.tolist(), picked.tolist(), strict=True):
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

    v <- norm(v + 0.08 y+ - 0.29 mean(y-) + 0.44 h), equation 9; the mean keeps its length.

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
