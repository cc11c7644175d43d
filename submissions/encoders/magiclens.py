"""MagicLens as a model of transformers: a CLIP, and the fusion of its two vectors.

The folder is that of a CLIP (`save_pretrained`: config.json, model.safetensors, tokenizer, image processor)
with `"model_type": "magiclens"`, the sizes of the fusion, and its weights under `fusion.`. Imported only
where transformers is there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel, CLIPConfig, CLIPModel

from submissions.encoders.magiclens_fusion import Fusion

MODEL_TYPE = "magiclens"


class MagicLensConfig(CLIPConfig):  # type: ignore[misc]  # transformers' bases lack types
    """A CLIP's configuration, and the fusion's.

    Args:
        fusion_layers: layers of self-attention.
        fusion_heads: heads of every attention; a divisor of `projection_dim`.
        fusion_feed_forward: width of the layer inside each feed-forward block.
        empty_text_ids: the tokens of an empty text: the gallery's images are fused with it.
        trained_on: benchmarks whose triplets it was trained on; empty for the published weights.
        training: how it was trained, for a reader; empty where that is not known.
    """

    model_type = MODEL_TYPE

    fusion_layers: int = 4
    fusion_heads: int = 8
    fusion_feed_forward: int = 2048
    empty_text_ids: list[int] | tuple[int, ...] = (49406, 49407)
    trained_on: list[str] | tuple[str, ...] = ()
    training: dict[str, Any] | None = None


class MagicLensModel(CLIPModel):  # type: ignore[misc]  # as above
    """A CLIP whose image and text features are fused into one vector."""

    config_class = MagicLensConfig
    config: MagicLensConfig

    def __init__(self, config: MagicLensConfig) -> None:
        """Make it with random weights."""
        super().__init__(config)
        self.fusion = Fusion(
            int(config.projection_dim or 0),
            config.fusion_layers,
            config.fusion_heads,
            config.fusion_feed_forward,
        )
        self.post_init()

    def image_vectors(self, pixel_values: Tensor) -> Tensor:
        """Vectors of images of the gallery, shape (n, dimensions): each fused with an empty text."""
        images = self.get_image_features(pixel_values=pixel_values).pooler_output
        vectors: Tensor = self.fusion(images, self.empty_text().expand(len(images), -1))
        return vectors

    def text_vectors(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Vectors of texts, shape (n, dimensions), of the text's token alone."""
        texts = self.get_text_features(input_ids=input_ids, attention_mask=attention_mask).pooler_output
        none = torch.zeros(len(texts), dtype=torch.bool, device=texts.device)
        vectors: Tensor = self.fusion(torch.zeros_like(texts), texts, none)
        return vectors

    def empty_text(self) -> Tensor:
        """Features of an empty text, shape (1, dimensions)."""
        ids = torch.tensor([list(self.config.empty_text_ids)], device=self.device)
        features: Tensor = self.get_text_features(input_ids=ids).pooler_output
        return features


def register() -> None:
    """Make the model known to `AutoConfig` and `AutoModel`; a second call changes nothing."""
    AutoConfig.register(MODEL_TYPE, MagicLensConfig, exist_ok=True)
    AutoModel.register(MagicLensConfig, MagicLensModel, exist_ok=True)
