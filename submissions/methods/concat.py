"""CIRR's concatenation baseline: a perceptron makes the query of the image's and the caption's vectors.

Source: Liu et al., ICCV 2021, arXiv:2108.04024, section 5. The paper trains its encoders too; here only the
perceptron is trained (`cir train concat`), on the vectors of any encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from submissions.encoders.extras import needs_torch
from submissions.methods.composing import Context, Vectors, unit
from submissions.methods.heads.checkpoints import Head, load_head
from submissions.methods.turns import Turn
from submissions.rank_file.model import Method

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder

KIND = "concat"


class Concat:
    """A trained perceptron on the vectors of image and caption: q = W2 relu(W1 [image; text]), of length 1.

    Args:
        checkpoint: a folder that `cir train concat` wrote.
    """

    name: ClassVar[str] = "concat"
    needs: ClassVar[frozenset[str]] = frozenset({"checkpoint"})

    def __init__(self, checkpoint: str | Path) -> None:
        """See the class."""
        self._folder = Path(checkpoint)

    def method(self, encoder: Encoder) -> Method:
        """Who answers; the backbone's line holds the start of the head's sha256.

        Raises:
            CheckpointError: the checkpoint cannot be used with this encoder.
        """
        head = self._head(encoder)
        return Method(
            name="Concat",
            paper="https://arxiv.org/abs/2108.04024",
            backbone=f"{encoder.identity.text()}; head {head.sha256[:12]}",
            zero_shot=False,
            trained_on=[str(head.training.get("benchmark", "unknown"))],
            text_fields=["relative_caption"],
            notes="A perceptron of two layers on the vectors of image and caption; the encoder is as it was.",
        )

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """What the perceptron makes of both vectors, shape (turns, dimensions).

        A reference or caption that is missing is a vector of zeros, as in training; without either there is
        no query. Of several texts the mean is taken.

        Raises:
            CheckpointError: the checkpoint cannot be used with this encoder.
        """
        import torch

        from submissions.methods.heads.concat import ConcatHead

        head = self._head(context.encoder).module(ConcatHead)
        images = context.image_vectors([turn.reference for turn in turns])
        words = context.text_vectors(context.texts(turns))
        with torch.inference_mode():
            made = unit(head(torch.from_numpy(images), torch.from_numpy(words)).numpy())
        made[~(images.any(axis=1) | words.any(axis=1))] = 0.0
        return made

    def _head(self, encoder: Encoder) -> Head:
        needs_torch("concat")
        return load_head(self._folder, KIND, encoder=encoder.identity)
