"""A CLIP text encoder that reads a sentence in which one word is a given vector.

Imported only where a method or its training needs torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from submissions.errors import EncoderError
from submissions.truncation import report_cuts

PROMPT = "a photo of"
"""What stands before the pseudo word."""


class PseudoWords:
    """Reads "a photo of [*], a caption", [*] being a given vector.

    The prompt's tokens, the place of [*] and the caption's tokens are put together here, so that it does not
    matter whether the tokenizer knows a sign for [*]: whatever stands at its place is overwritten.

    Args:
        encoder: of `load_encoder`, of the CLIP family.

    Raises:
        EncoderError: the encoder is not a CLIP, or its tokenizer does not mark start and end of a text.
    """

    def __init__(self, encoder: Any) -> None:
        """See the class."""
        from transformers import CLIPModel

        model = getattr(encoder, "model", None)
        tokenizer = getattr(encoder, "tokenizer", None)
        if tokenizer is None or not isinstance(model, CLIPModel):
            raise EncoderError(
                f"Pic2Word puts a word into the text encoder of a CLIP, and {encoder.identity.model} is of "
                f"the family {encoder.identity.family}. Fix: use an encoder of the family clip."
            )
        self._model: Any = encoder.model
        self._name = encoder.identity.model
        self._tokenizer = tokenizer
        self._longest = int(self._model.config.text_config.max_position_embeddings)
        marks = list(tokenizer("")["input_ids"])
        if len(marks) != 2:
            raise EncoderError(
                f"the tokenizer of {encoder.identity.model} puts {len(marks)} tokens around a text, not a "
                "start and an end. Fix: use an encoder with CLIP's tokenizer."
            )
        self._start, self._end = marks
        self._prompt = self._tokens(PROMPT)

    @property
    def token_size(self) -> int:
        """Dimensions of a token's embedding."""
        return int(self._model.config.text_config.hidden_size)

    @property
    def device(self) -> torch.device:
        """Where the text encoder's weights lie."""
        found: torch.device = self._model.text_projection.weight.device
        return found

    @property
    def scale(self) -> float:
        """What the encoder multiplies similarities with, 1 / temperature."""
        return float(self._model.logit_scale.detach().exp())

    @property
    def token_embedding(self) -> Tensor:
        """The text encoder's embeddings of tokens, shape (tokens, token_size)."""
        table: Tensor = self._model.text_model.embeddings.token_embedding.weight
        return table

    def encode(self, words: Tensor, captions: Sequence[str]) -> Tensor:
        """Vectors of "a photo of [*], caption", or of "a photo of [*]" where the caption is empty.

        Args:
            words: the pseudo words, shape (n, token_size).
            captions: what follows, n texts; longer than the text encoder reads, they are cut at its end.

        Returns:
            Shape (n, dimensions), float32, rows of length 1.
        """
        rows, longest = [self._ids(caption) for caption in captions], self._longest
        whole = [[*row[: longest - 1], self._end] if len(row) > longest else row for row in rows]
        ids = torch.tensor(self._filled(whole), device=self.device)
        with self._in_place(words):
            pooled = self._model.text_model(input_ids=ids).pooler_output
        return nn.functional.normalize(self._model.text_projection(pooled).float(), dim=-1)

    def warn_of_cuts(self, captions: Sequence[str]) -> None:
        """Say how many captions are too long behind the pseudo word, and will be cut.

        Warns:
            TruncationWarning: some are; the message counts them, of a run all together.
        """
        cut = [caption for caption in captions if len(self._ids(caption)) > self._longest]
        report_cuts(cut, captions, limit=self._longest, model=self._name)

    def _tokens(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _ids(self, caption: str) -> list[int]:
        rest = self._tokens(f", {caption}") if caption else []
        return [self._start, *self._prompt, self._prompt[0], *rest, self._end]

    def _filled(self, rows: list[list[int]]) -> list[list[int]]:
        # What follows the end of a text is not read: attention looks back only, and the first end is pooled.
        longest = max(len(row) for row in rows)
        return [row + [self._end] * (longest - len(row)) for row in rows]

    @contextmanager
    def _in_place(self, words: Tensor) -> Iterator[None]:
        """While this lasts, the embedding at the place of [*] is the pseudo word."""
        place = 1 + len(self._prompt)

        def overwrite(_module: nn.Module, _given: Any, embedded: Tensor) -> Tensor:
            return torch.cat(
                [embedded[:, :place], words.to(embedded.dtype)[:, None], embedded[:, place + 1 :]], dim=1
            )

        handle = self._model.text_model.embeddings.token_embedding.register_forward_hook(overwrite)
        try:
            yield
        finally:
            handle.remove()
