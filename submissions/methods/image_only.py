"""The reference image alone, in an encoder's space: how far it gets to look like it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from submissions.methods.card import Described
from submissions.methods.composing import Context, Vectors
from submissions.methods.turns import Turn


class ImageOnly(Described):
    """The reference's vector; captions are not read."""

    name: ClassVar[str] = "image_only"

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """The reference's vector, shape (turns, dimensions); zeros without a reference."""
        return context.image_vectors([turn.reference for turn in turns])
