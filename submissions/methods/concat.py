"""CIRR's concatenation baseline: a perceptron makes the query of the image's and the caption's vectors.

Source: Liu et al., ICCV 2021, arXiv:2108.04024, section 5. The paper trains its encoders too; here only the
perceptron is trained (`cir train concat`), on the vectors of any encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from submissions.methods.composing import Context, Vectors, unit
from submissions.methods.trained_heads import HeadMethod
from submissions.methods.turns import Turn


class Concat(HeadMethod):
    """A trained perceptron on the vectors of image and caption: q = W2 relu(W1 [image; text]), of length 1.

    Args:
        checkpoint: a folder that `cir train concat` wrote.
    """

    name: ClassVar[str] = "concat"

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """What the perceptron makes of both vectors, shape (turns, dimensions).

        A reference or caption that is missing is a vector of zeros, as in training; without either there is
        no query. Of several texts the mean is taken.

        Raises:
            CheckpointError: the checkpoint cannot be used with this encoder.
        """
        import torch

        from submissions.methods.heads.concat import ConcatHead

        head = self.head(context.encoder).module(ConcatHead)
        images = context.image_vectors([turn.reference for turn in turns])
        words = context.text_vectors(context.texts(turns))
        with torch.inference_mode():
            made = unit(head(torch.from_numpy(images), torch.from_numpy(words)).numpy())
        made[~(images.any(axis=1) | words.any(axis=1))] = 0.0
        return made
