"""MagicLens: one model fuses image and text into the query's vector, and image and "" into the gallery's.

q = f(image, caption), g = f(image, ""), f = attention pooling of a small transformer over two tokens, the
features that a CLIP has of image and text.

Source: Zhang et al., MagicLens: Self-Supervised Image Retrieval with Open-Ended Instructions, ICML 2024,
arXiv:2403.19651. The checkpoint is an encoder of its own: no other encoder's gallery can be searched with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from submissions.errors import CheckpointError
from submissions.methods.card import method_card
from submissions.methods.composing import Context, Vectors, mean_of_pairs, text_pairs
from submissions.methods.turns import Turn
from submissions.rank_file.model import Method

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder

FAMILY = "magiclens"


class MagicLens:
    """A transformer's fusion of image and caption, trained on pairs with instructions.

    Args:
        checkpoint: a folder in Hugging Face format, or a name on the Hub, of the model type `magiclens`.
    """

    name: ClassVar[str] = "magiclens"
    needs: ClassVar[frozenset[str]] = frozenset({"checkpoint"})

    def __init__(self, checkpoint: str) -> None:
        """See the class."""
        self.bound_encoder = str(checkpoint)

    def method(self, encoder: Encoder) -> Method:
        """Who answers; the encoder's own line holds the start of the weights' sha256.

        Raises:
            CheckpointError: the encoder is not a MagicLens.
        """
        trained_on = list(self._model(encoder).config.trained_on)
        return method_card(self.name).method(zero_shot=not trained_on, trained_on=trained_on)

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """The fusion of reference and caption, shape (turns, dimensions); of several texts the mean.

        Without a caption the text is empty, as in the gallery; without a reference it is the only token.

        Raises:
            CheckpointError: the encoder is not a MagicLens.
        """
        import torch

        from submissions.methods.heads.features import reference_features, text_features

        model = self._model(context.encoder)
        device, dtype = model.fusion.question.device, model.fusion.question.dtype
        images = reference_features(context, [turn.reference for turn in turns])
        shown: NDArray[np.bool_] = np.any(images, axis=1)
        pairs = text_pairs(context.texts(turns), shown)
        place = {text: number for number, text in enumerate(dict.fromkeys(text for _, text in pairs))}
        features = text_features(context.encoder, list(place), context.batch_size)

        def fused(rows: NDArray[np.int64], texts: list[str]) -> Vectors:
            words = features[[place[text] for text in texts]]
            with torch.inference_mode():
                vectors = model.fusion(
                    torch.from_numpy(images[rows]).to(device, dtype),
                    torch.from_numpy(words).to(device, dtype),
                    torch.from_numpy(shown[rows]).to(device),
                )
            return np.asarray(vectors.cpu().numpy())

        return mean_of_pairs(pairs, np.zeros(images.shape), context.batch_size, fused)

    def _model(self, encoder: Any) -> Any:
        if encoder.identity.family != FAMILY:
            raise CheckpointError(
                f"magiclens composes in the space of its checkpoint, and {encoder.identity.model} is of the "
                f"family {encoder.identity.family}. Fix: name a folder of the model type {FAMILY} as "
                "--checkpoint (docs/training.md), and leave --encoder out."
            )
        return encoder.model
