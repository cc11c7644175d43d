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
from submissions.methods.composing import Context, Vectors, unit
from submissions.methods.heads.checkpoints import Head, load_head
from submissions.methods.turns import Turn
from submissions.rank_file.model import Method

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder, Identity

SHIPPED = "shapes"
"""What a checkpoint is called that comes with the package, beside the shipped encoder."""

_AT_ONCE = 256


class Cirplant:
    """A transformer over the caption's words and the projected image, whose output is the target's feature.

    Args:
        checkpoint: a folder that `cir train cirplant` wrote, or `shapes`: the one that comes with the
            package, for the shipped encoder.
    """

    name: ClassVar[str] = "cirplant"
    needs: ClassVar[frozenset[str]] = frozenset({"checkpoint"})
    title: ClassVar[str] = "CIRPLANT"
    paper: ClassVar[str] = "https://arxiv.org/abs/2108.04024"

    def __init__(self, checkpoint: str | Path) -> None:
        """See the class."""
        shipped = Path(__file__).with_name("heads") / SHIPPED / self.name
        self._folder = shipped if str(checkpoint) == SHIPPED else Path(checkpoint)
        self._loaded: tuple[Identity, Head, Any, Any] | None = None

    def method(self, encoder: Encoder) -> Method:
        """Who answers; the backbone's line holds the start of the network's sha256.

        Raises:
            CheckpointError: the checkpoint cannot be used with this encoder.
        """
        head, _, _ = self._parts(encoder)
        begun = head.training.get("init")
        return Method(
            name=self.title,
            paper=self.paper,
            backbone=f"{encoder.identity.text()}; head {head.sha256[:12]}",
            zero_shot=False,
            trained_on=[str(head.training.get("benchmark", "unknown"))],
            text_fields=["relative_caption"],
            notes="A trained network on the image's vector and the caption's words; "
            + (f"it began with the BERT {str(begun)[:12]}." if begun else "it began at random."),
        )

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
        pairs = [
            (row, text)
            for row, texts in enumerate(context.texts(turns))
            for text in texts or ([""] if shown[row] else [])
        ]
        rows = np.array([row for row, _ in pairs], dtype=np.int64)
        tokens = read_captions(tokenizer, [text for _, text in pairs])
        made = composed_vectors(network, images[rows], tokens, tokenizer.pad_token_id, _AT_ONCE)
        found = np.zeros((len(turns), made.shape[1]), dtype=np.float64)
        np.add.at(found, rows, made)
        return unit(found)

    def project(self, vectors: Vectors, encoder: Encoder) -> Vectors:
        """Images of the encoder in the network's space, rows of length 1.

        Raises:
            CheckpointError: the checkpoint cannot be used with this encoder.
        """
        from submissions.methods.heads.composition import projected_vectors

        return projected_vectors(self._parts(encoder)[1], vectors, _AT_ONCE)

    def _parts(self, encoder: Encoder) -> tuple[Head, Any, Any]:
        """The checkpoint, its network and its tokenizer, read once for an encoder."""
        needs_torch(self.name)
        from submissions.methods.heads.composition import COMPOSITIONS
        from submissions.methods.heads.wordpieces import TOKENIZER, load_tokenizer

        if self._loaded is None or self._loaded[0] != encoder.identity:
            head = load_head(self._folder, self.name, encoder=encoder.identity, beside=TOKENIZER)
            network = head.module(COMPOSITIONS[self.name])
            self._loaded = (encoder.identity, head, network, load_tokenizer(self._folder))
        return self._loaded[1:]


class Tirg(Cirplant):
    """The image's feature gated by image and text, plus a residual of both.

    Args:
        checkpoint: a folder that `cir train tirg` wrote, or `shapes`: the one that comes with the package.
    """

    name: ClassVar[str] = "tirg"
    title: ClassVar[str] = "TIRG"
    paper: ClassVar[str] = "https://arxiv.org/abs/1812.07119"
