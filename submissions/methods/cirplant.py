"""CIRPLANT and TIRG: trained networks that make the target's vector of the reference and the caption.

q = f(x, words), g = W x: the gallery's images go through the network's own projection, so that the ranking is
in its space and not in the encoder's. The embeddings of the store stay as they are.

Sources: Liu et al., ICCV 2021, arXiv:2108.04024; Vo et al., CVPR 2019, arXiv:1812.07119.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from submissions.encoders.extras import needs_torch
from submissions.methods.card import method_card
from submissions.methods.composing import Context, Vectors, mean_of_pairs, text_pairs
from submissions.methods.heads.checkpoints import Head, load_head
from submissions.methods.trained_heads import HeadMethod
from submissions.methods.turns import Turn

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder, Identity

SHIPPED = "shapes"
"""What a checkpoint is called that comes with the package, beside the shipped encoder."""

_AT_ONCE = 256


class Cirplant(HeadMethod):
    """A transformer over the caption's words and the projected image, whose output is the target's feature.

    Args:
        checkpoint: a folder that `cir train cirplant` wrote, or `shapes`: the one that comes with the
            package, for the shipped encoder.
    """

    name: ClassVar[str] = "cirplant"

    def __init__(self, checkpoint: str | Path) -> None:
        """See the class."""
        shipped = Path(__file__).with_name("heads") / SHIPPED / self.name
        super().__init__(shipped if str(checkpoint) == SHIPPED else checkpoint)
        self._loaded: tuple[Identity, Head, Any, Any] | None = None

    def said_of(self, head: Head) -> dict[str, Any]:
        """What a rank file says of this head's training, with what it began with."""
        bert = head.training.get("init")
        begun = f"with the BERT {str(bert)[:12]}" if bert else "at random"
        if earlier := head.training.get("from"):
            begun = f"with the checkpoint {str(earlier['sha256'])[:12]}"
        return {**super().said_of(head), "notes": f"{method_card(self.name).notes}; it began {begun}."}

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """What the network makes of each reference and caption, shape (turns, its dimensions).

        A missing reference is a vector of zeros, a missing caption an empty text; without either there is no
        query. Of several texts the mean is taken.

        Raises:
            CheckpointError: the checkpoint cannot be used with this encoder.
        """
        from submissions.methods.heads.composition import composed_vectors
        from submissions.methods.heads.wordpieces import read_captions

        _, network, tokenizer = self._parts(context.encoder)
        images = context.image_vectors([turn.reference for turn in turns])
        shown: NDArray[np.bool_] = np.any(images, axis=1)

        def composed(rows: NDArray[np.int64], texts: list[str]) -> Vectors:
            tokens = read_captions(tokenizer, texts)
            return composed_vectors(network, images[rows], tokens, tokenizer.pad_token_id, _AT_ONCE)

        found = np.zeros((len(turns), network.projection.out_features))
        return mean_of_pairs(text_pairs(context.texts(turns), shown), found, _AT_ONCE, composed)

    def project(self, vectors: Vectors, encoder: Encoder) -> Vectors:
        """Images of the encoder in the network's space, rows of length 1.

        Raises:
            CheckpointError: the checkpoint cannot be used with this encoder.
        """
        from submissions.methods.heads.composition import projected_vectors

        return projected_vectors(self._parts(encoder)[1], vectors, _AT_ONCE)

    def head(self, encoder: Encoder) -> Head:
        """See `HeadMethod`."""
        return self._parts(encoder)[0]

    def _parts(self, encoder: Encoder) -> tuple[Head, Any, Any]:
        """The checkpoint, its network and its tokenizer, read once for an encoder."""
        needs_torch(self.name)
        from submissions.methods.heads.composition import COMPOSITIONS
        from submissions.methods.heads.wordpieces import TOKENIZER, load_tokenizer

        if self._loaded is None or self._loaded[0] != encoder.identity:
            head = load_head(self.checkpoint, self.name, encoder=encoder.identity, beside=TOKENIZER)
            network = head.module(COMPOSITIONS[self.name])
            self._loaded = (encoder.identity, head, network, load_tokenizer(self.checkpoint))
        return self._loaded[1:]


class Tirg(Cirplant):
    """The image's feature gated by image and text, plus a residual of both.

    Args:
        checkpoint: a folder that `cir train tirg` wrote, or `shapes`: the one that comes with the package.
    """

    name: ClassVar[str] = "tirg"
