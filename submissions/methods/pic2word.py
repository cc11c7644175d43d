"""Pic2Word: the reference becomes one word, and the query is a text with that word in it.

q = text("a photo of [*], caption"), [*] = f(image) with a trained network f.

Source: Saito et al., Pic2Word: Mapping Pictures to Words for Zero-shot Composed Image Retrieval, CVPR 2023,
arXiv:2302.03084.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from submissions.encoders.extras import needs_torch
from submissions.methods.composing import Context, Vectors, mean_of_pairs, text_pairs
from submissions.methods.heads.checkpoints import Head
from submissions.methods.trained_heads import HeadMethod, trained_on
from submissions.methods.turns import Turn

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder


class Pic2Word(HeadMethod):
    """A word made of the reference image, in the text "a photo of [*], caption".

    Args:
        checkpoint: a folder that `cir train pic2word` wrote, or a file in the
            layout of the authors' release.
    """

    name: ClassVar[str] = "pic2word"
    part: ClassVar[str] = "mapping network"

    def said_of(self, head: Head) -> dict[str, Any]:
        """What a rank file says of this head's training: it saw pictures alone."""
        training = head.training
        galleries = training.get("members") or filter(None, [training.get("pictures")])
        return {"trained_on": trained_on(training, [f"pictures of {gallery}" for gallery in galleries])}

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

        head = self.head(context.encoder)
        words = PseudoWords(context.encoder)
        network = head.module(MappingNetwork).to(words.device)
        references = [turn.reference for turn in turns]
        if head.training.get("input") is None:
            images = context.image_vectors(references)
        else:
            images = reference_features(context, references)
        texts = context.texts(turns)
        shown: NDArray[np.bool_] = np.any(images, axis=1)
        found = np.zeros(images.shape, dtype=np.float64)
        found[~shown] = context.text_vectors([texts[row] for row in np.flatnonzero(~shown)])
        pairs = [pair for pair in text_pairs(texts, shown) if shown[pair[0]]]
        words.warn_of_cuts([text for _, text in pairs])

        def encode(rows: NDArray[np.int64], captions: list[str]) -> Vectors:
            with torch.inference_mode():
                pseudo = network(torch.from_numpy(images[rows]).to(words.device))
                return np.asarray(words.encode(pseudo, captions).cpu().numpy())

        return mean_of_pairs(pairs, found, context.batch_size, encode)

    def head(self, encoder: Encoder) -> Head:
        """The mapping network, of a folder or of its authors' file.

        Raises:
            CheckpointError: it cannot be used with this encoder.
        """
        if not self.checkpoint.is_file():
            return super().head(encoder)
        needs_torch(self.name)
        from submissions.methods.heads.pseudo_words import PseudoWords
        from submissions.methods.heads.published_pic2word import load_published

        return load_published(self.checkpoint, PseudoWords(encoder), encoder.identity.dimensions)
