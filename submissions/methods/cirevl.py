"""CIReVL: caption the reference, let a language model write the target's caption, search with that text.

Source: Karthik et al., ICLR 2024, arXiv:2310.09291. The captioner and the writer are those of `--language`;
prompts are ours (`submissions/language/templates`) or the user's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from submissions.methods.card import Described
from submissions.methods.composing import Context, Vectors
from submissions.methods.reference_captions import language_of, reference_captions
from submissions.methods.turns import Turn


class CIReVL(Described):
    """The vector of the target's caption, as a language model writes it."""

    name: ClassVar[str] = "cirevl"
    needs: ClassVar[frozenset[str]] = frozenset({"language"})

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """The merged caption's vector, shape (turns, dimensions); of several texts the mean.

        Without a reference it is the relative caption alone, without words the reference's caption; there is
        nothing to merge then, and the language model is not asked.

        Raises:
            LanguageError: pictures have no caption, or captions no merge.
        """
        captions = reference_captions(turns, context)
        texts = context.texts(turns)
        pairs = [
            (caption, text) for caption, own in zip(captions, texts, strict=True) if caption for text in own
        ]
        merged = iter(
            language_of(context).merge([caption for caption, _ in pairs], [text for _, text in pairs])
        )
        return context.text_vectors(
            [
                ([next(merged) for _ in own] or [caption]) if caption else own
                for caption, own in zip(captions, texts, strict=True)
            ]
        )
