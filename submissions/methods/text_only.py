"""The relative caption alone, in an encoder's space: how far words get without a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from submissions.methods.card import Described
from submissions.methods.composing import Context, Vectors
from submissions.methods.turns import Turn


class TextOnly(Described):
    """The caption's vector; the reference image is not looked at."""

    name: ClassVar[str] = "text_only"

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """The caption's vector, shape (turns, dimensions); zeros without words."""
        return context.text_vectors(context.texts(turns))
