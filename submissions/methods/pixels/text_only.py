"""The caption alone: its words for colours and backgrounds against the colours of each picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.yaml import package_yaml
from cir_datasets.registry.caption_rules import TURN_RULE
from submissions.methods.card import method_card
from submissions.methods.turns import Candidates, Turn
from submissions.rank_file.model import Method

_ENOUGH = 50
"""A colour counts as there from one pixel in so many."""
_PHRASES = re.compile(r"\band\b|,|;|\bwith\b")
_WORDS = re.compile(r"[a-z]+")


class TextOnlyPixels:
    """A picture scores by the caption's colours and backgrounds that it shows, less the refused ones."""

    needs_pictures: ClassVar[bool] = True
    aggregation: ClassVar[Literal["latest", "average"]] = "average"

    def method(self) -> Method:
        """Who answers."""
        return method_card("text_only_pixels").method(backbone="none (colour words)", caption_rule=TURN_RULE)

    def scores(self, turns: Sequence[Turn], gallery: Candidates) -> NDArray[np.float64]:
        """Sum over the caption's words of how far each image shows them, shape (turns, images)."""
        wanted = np.array([word_weights(turn.text) for turn in turns])
        # Sums of whole numbers: the same on every machine.
        shown: NDArray[np.float64] = wanted @ gallery.seen(word_presence).T
        return shown / np.prod(gallery.pictures.shape[1:3])


def _words() -> Any:
    return package_yaml("submissions", "methods/pixels/words.yaml")


def _tones() -> dict[str, list[int]]:
    """The tone of each known word, colours before backgrounds."""
    return {**_words()["colours"], **_words()["backgrounds"]}


def word_weights(caption: str) -> list[float]:
    """1 for each known word of a caption, -1 where its phrase refuses it, else 0.

    Example:
        >>> [weight for weight in word_weights("a red star and no blue moon") if weight]
        [1.0, -1.0]
    """
    weights, refusals = dict.fromkeys(_tones(), 0.0), set(_words()["refusals"])
    for phrase in _PHRASES.split(caption.lower()):
        found = _WORDS.findall(phrase)
        sign = -1.0 if refusals & set(found) else 1.0
        for word in found:
            if word in weights:
                weights[word] = sign
    return list(weights.values())


def word_presence(pictures: NDArray[np.uint8]) -> NDArray[np.float64]:
    """How far each picture shows each known word, in pixels, whole numbers, shape (images, words).

    Every pixel goes to the nearest tone; a colour is there, with all pixels, when it has one in fifty, and a
    background as far as it covers the picture.
    """
    tones = np.array([*_tones().values()], np.float64)
    count = pictures.shape[0]
    pixels_shown = np.empty((count, len(tones)))
    for start in range(0, count, 256):
        pixels = pictures[start : start + 256].reshape(-1, 3).astype(np.float64)
        # Tones are whole numbers, and so are these sums.
        distances = (tones**2).sum(axis=1) - 2.0 * pixels @ tones.T
        nearest = distances.argmin(axis=1).reshape(min(256, count - start), -1)
        for word in range(len(tones)):
            pixels_shown[start : start + 256, word] = np.count_nonzero(nearest == word, axis=1)
    colours = pixels_shown[:, : len(_words()["colours"])]
    np.minimum(colours * _ENOUGH, np.prod(pictures.shape[1:3]), out=colours)
    return pixels_shown
