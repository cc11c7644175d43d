"""Image and text together: the sum of image-only and text-only, each standardised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cir_datasets.registry.caption_rules import TURN_RULE
from cir_metrics.sums import exact_means
from submissions.methods.card import method_card
from submissions.methods.pixels.image_only import ImageOnlyPixels
from submissions.methods.pixels.text_only import TextOnlyPixels
from submissions.methods.turns import Candidates, Turn
from submissions.rank_file.model import Method


class ImageTextSumPixels:
    """Standard scores of `image_only_pixels` and `text_only_pixels`, added with equal weight."""

    needs_pictures: ClassVar[bool] = True
    aggregation: ClassVar[Literal["latest", "average"]] = "latest"

    def method(self) -> Method:
        """Who answers."""
        return method_card("image_text_sum_pixels").method(
            backbone="none (colour histogram, thumbnail and colour words)", caption_rule=TURN_RULE
        )

    def scores(self, turns: Sequence[Turn], gallery: Candidates) -> NDArray[np.float64]:
        """Sum of the two standard scores, shape (turns, images)."""
        return _standardised(ImageOnlyPixels().scores(turns, gallery)) + _standardised(
            TextOnlyPixels().scores(turns, gallery)
        )


def _standardised(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each row with mean 0 and deviation 1; a row of equal scores becomes 0."""
    centred = scores - exact_means(scores.T)[:, None]
    deviations = np.sqrt(exact_means((centred**2).T))
    standard: NDArray[np.float64] = centred / np.maximum(deviations, 1e-9)[:, None]
    return standard
