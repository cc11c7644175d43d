"""The reference image alone, in an encoder's space: how far it gets to look like it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from submissions.methods.composing import Context, Vectors
from submissions.methods.turns import Turn
from submissions.rank_file.model import Method

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder


class ImageOnly:
    """The reference's vector; captions are not read."""

    name: ClassVar[str] = "image_only"
    needs: ClassVar[frozenset[str]] = frozenset()

    def method(self, encoder: Encoder) -> Method:
        """Who answers."""
        return Method(
            name="Image only", zero_shot=True, notes="The reference image's vector; captions are not read."
        )

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """The reference's vector, shape (turns, dimensions); zeros without a reference."""
        return context.image_vectors([turn.reference for turn in turns])
