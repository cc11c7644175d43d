"""Pic2Word: the reference becomes one word, and the query is a text with that word in it.

q = text("a photo of [*], caption"), [*] = f(image) with a trained network f.

Source: Saito et al., Pic2Word: Mapping Pictures to Words for Zero-shot Composed Image Retrieval, CVPR 2023,
arXiv:2302.03084.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from submissions.encoders.extras import needs_torch
from submissions.methods.composing import Context, Vectors, unit
from submissions.methods.heads.checkpoints import Head, load_head
from submissions.methods.turns import Turn
from submissions.rank_file.model import Method

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder

KIND = "pic2word"


class Pic2Word:
    """A word made of the reference image, in the text "a photo of [*], caption".

    Args:
        checkpoint: a folder that `cir train pic2word` wrote, or a file in the
            layout of the authors' release.
    """

    name: ClassVar[str] = "pic2word"
    needs: ClassVar[frozenset[str]] = frozenset({"checkpoint"})

    def __init__(self, checkpoint: str | Path) -> None:
        """See the class."""
        self._checkpoint = Path(checkpoint).expanduser()

    def method(self, encoder: Encoder) -> Method:
        """Who answers; the backbone's line holds the start of the checkpoint's sha256.

        Raises:
            CheckpointError: the checkpoint cannot be used with this encoder.
        """
        head = self._head(encoder)
        pictures = head.training.get("pictures")
        return Method(
            name="Pic2Word",
            paper="https://arxiv.org/abs/2302.03084",
            backbone=f"{encoder.identity.text()}; mapping network {head.sha256[:12]}",
            zero_shot=True,
            trained_on=[] if pictures is None else [f"pictures of {pictures}"],
            text_fields=["relative_caption"],
            notes="The text 'a photo of [*], caption', [*] being a word made of the reference image.",
        )

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """The text's vector, shape (turns, dimensions); of several texts the mean.

        Without a caption the text is "a photo of [*]"; without a reference it is the caption alone.

        Raises:
            CheckpointError: the checkpoint cannot be used with this encoder.
            EncoderError: the encoder is not a CLIP.
        """
        import torch

        from submissions.methods.heads.features import reference_features
        from submissions.methods.heads.mapping_network import MappingNetwork
        from submissions.methods.heads.pseudo_words import PseudoWords

        head = self._head(context.encoder)
        words = PseudoWords(context.encoder)
        network = head.module(MappingNetwork).to(words.device)
        references = [turn.reference for turn in turns]
        if head.training.get("input") is None:
            images = context.image_vectors(references)
        else:
            images = reference_features(context, references)
        texts = context.texts(turns)
        shown = images.any(axis=1)
        found = np.zeros(images.shape, dtype=np.float64)
        found[~shown] = context.text_vectors([texts[row] for row in np.flatnonzero(~shown)])
        pairs = [(int(row), text) for row in np.flatnonzero(shown) for text in texts[row] or [""]]
        words.warn_of_cuts([text for _, text in pairs])
        for start in range(0, len(pairs), context.batch_size):
            part = pairs[start : start + context.batch_size]
            rows = np.array([row for row, _ in part])
            with torch.inference_mode():
                pseudo = network(torch.from_numpy(images[rows]).to(words.device))
                read = words.encode(pseudo, [text for _, text in part]).cpu().numpy()
            np.add.at(found, rows, read)
        return unit(found)

    def _head(self, encoder: Encoder) -> Head:
        needs_torch("pic2word")
        if self._checkpoint.is_file():
            from submissions.methods.heads.pseudo_words import PseudoWords
            from submissions.methods.heads.published_pic2word import load_published

            return load_published(self._checkpoint, PseudoWords(encoder), encoder.identity.dimensions)
        return load_head(self._checkpoint, KIND, encoder=encoder.identity)
