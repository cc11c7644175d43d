"""Reference image and relative caption together: the sum of their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from submissions.methods.asking import Ask
from submissions.methods.composing import Context, Vectors, unit
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

    def compose(self, asks: Sequence[Ask], context: Context) -> Vectors:
        """The sum of both vectors, shape (questions, dimensions); the one there is where one is missing."""
        images = context.image_vectors([ask.reference for ask in asks])
        return unit(images + context.text_vectors(context.texts(asks)))
