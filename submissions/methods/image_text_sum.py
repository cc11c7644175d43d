"""Reference image and relative caption together: the sum of their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from submissions.methods.composing import Context, Vectors, unit
from submissions.methods.turns import Turn
from submissions.rank_file.model import Method

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder


class ImageTextSum:
    """q = (image + text) / |image + text|, both of length 1."""

    name: ClassVar[str] = "image_text_sum"
    needs: ClassVar[frozenset[str]] = frozenset()

    def method(self, encoder: Encoder) -> Method:
        """Who answers."""
        return Method(
            name="Image + text, sum",
            zero_shot=True,
            text_fields=["relative_caption"],
            notes="The vectors of reference image and relative caption, added with equal weight.",
        )

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """The sum of both vectors, shape (turns, dimensions); the one there is where one is missing."""
        images = context.image_vectors([turn.reference for turn in turns])
        return unit(images + context.text_vectors(context.texts(turns)))
