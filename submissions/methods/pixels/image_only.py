"""The reference image alone: how far it gets to look like it, without reading a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from submissions.methods.card import method_card
from submissions.methods.turns import Candidates, Turn
from submissions.rank_file.model import Method

_BINS = 4
"""Steps a colour channel of the histogram."""
_GRID = 6
"""Side of the thumbnail that stands for layout."""
_UNIT = 2.0**-25
"""What features are rounded to."""


class ImageOnlyPixels:
    """Cosine of plain picture features: a colour histogram and a thumbnail.

    Every step is the same on every machine: whole numbers, roots and quotients, and at the end a product of
    whole numbers. So is the ranking.
    """

    needs_pictures: ClassVar[bool] = True
    aggregation: ClassVar[Literal["latest", "average"]] = "latest"

    def method(self) -> Method:
        """Who answers."""
        return method_card("image_only_pixels").method(backbone="none (colour histogram and thumbnail)")

    def scores(self, turns: Sequence[Turn], gallery: Candidates) -> NDArray[np.float64]:
        """Cosine of each image to each turn's reference, shape (turns, images); 0 without one."""
        features = gallery.seen(picture_features)
        columns = np.array([gallery.place.get(turn.reference or "", -1) for turn in turns])
        references = np.where(columns[:, None] >= 0, features[columns], 0.0)
        # Rows of length 2^25: no sum of products gets beyond 2^53, so that none is rounded.
        cosines: NDArray[np.float64] = (references @ features.T) * _UNIT**2
        return cosines


def picture_features(pictures: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Features, rounded to whole numbers, of a length of about 2^25, shape (images, features).

    Args:
        pictures: RGB, shape (images, side, side, 3); the side is a multiple of six.
    """
    count, side = pictures.shape[0], pictures.shape[1]
    steps = (pictures // (256 // _BINS)).reshape(count, -1, 3).astype(np.int64)
    codes = (steps[..., 0] * _BINS + steps[..., 1]) * _BINS + steps[..., 2]
    offsets = codes + np.arange(count)[:, None] * _BINS**3
    histogram = np.bincount(offsets.ravel(), minlength=count * _BINS**3).reshape(count, -1)
    cell = side // _GRID
    tiles = pictures[:, : cell * _GRID, : cell * _GRID].reshape(count, _GRID, cell, _GRID, cell, 3)
    thumbnail = tiles.sum(axis=(2, 4), dtype=np.int64).reshape(count, -1)
    # Without its mean, brightness alone is not a likeness; times their number, differences stay whole.
    contrast = thumbnail * thumbnail.shape[1] - thumbnail.sum(axis=1, keepdims=True)
    squares = (contrast**2).sum(axis=1, keepdims=True)
    # Square roots tame the background's big bins.
    parts = [np.sqrt(histogram / steps.shape[1]), contrast / np.sqrt(np.maximum(squares, 1))]
    features: NDArray[np.float64] = np.rint(np.hstack(parts) / (np.sqrt(2.0) * _UNIT))
    return features
