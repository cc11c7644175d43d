"""The reference in words, the relative caption behind it, and both search for images as one text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from submissions.methods.card import Described
from submissions.methods.composing import Context, Vectors
from submissions.methods.reference_captions import reference_captions
from submissions.methods.turns import Turn


class Captioning(Described):
    """The vector of "{caption of the reference}, {relative caption}"."""

    name: ClassVar[str] = "captioning"
    needs: ClassVar[frozenset[str]] = frozenset({"language"})

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """The joined text's vector, shape (turns, dimensions); of several texts the mean.

        Without a reference it is the relative caption alone, without words the reference's caption.

        Raises:
            LanguageError: pictures have no caption.
        """
        captions = reference_captions(turns, context)
        return context.text_vectors(
            [joined(caption, texts) for caption, texts in zip(captions, context.texts(turns), strict=True)]
        )


def joined(caption: str, texts: Sequence[str]) -> list[str]:
    """A caption with each text behind it.

    Example:
        >>> joined("a red star", ["a blue one", "larger"])
        ['a red star, a blue one', 'a red star, larger']
        >>> joined("", ["a blue star"]), joined("a red star", []), joined("", [])
        (['a blue star'], ['a red star'], [])
    """
    if not caption:
        return list(texts)
    return [f"{caption}, {text}" for text in texts] or [caption]
