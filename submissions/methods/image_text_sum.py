"""Reference image and relative caption together: the sum of their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from submissions.methods.card import Described
from submissions.methods.composing import Context, Vectors, unit
from submissions.methods.turns import Turn


class ImageTextSum(Described):
    """q = (image + text) / |image + text|, both of length 1."""

    name: ClassVar[str] = "image_text_sum"

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """The sum of both vectors, shape (turns, dimensions); the one there is where one is missing."""
        images = context.image_vectors([turn.reference for turn in turns])
        return unit(images + context.text_vectors(context.texts(turns)))
