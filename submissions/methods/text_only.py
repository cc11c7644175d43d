"""The relative caption alone, in an encoder's space: how far words get without a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from submissions.methods.composing import Context, Vectors
from submissions.methods.turns import Turn
from submissions.rank_file.model import Method

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder


class TextOnly:
    """The caption's vector; the reference image is not looked at."""

    name: ClassVar[str] = "text_only"
    needs: ClassVar[frozenset[str]] = frozenset()

    def method(self, encoder: Encoder) -> Method:
        """Who answers."""
        return Method(
            name="Text only",
            zero_shot=True,
            text_fields=["relative_caption"],
            notes="The relative caption's vector; no reference image.",
        )

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """The caption's vector, shape (turns, dimensions); zeros without words."""
        return context.text_vectors(context.texts(turns))
