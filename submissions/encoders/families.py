"""Families of dual encoders: which vectors of a model are those of an image and of a text.

CLIP (OpenAI's and OpenCLIP's), SigLIP (and SigLIP 2 of fixed size, which is the same
architecture), SigLIP 2 of free size, and BLIP's image-text contrastive head (the projected first tokens, as
CIRCLED uses BLIP fine-tuned for retrieval on COCO). MagicLens is a CLIP with a fusion of its two vectors;
an image's vector there is that of the image with an empty text. ResNet and ViT (its first token, as
ZeroSight uses ViT-L/16) know images alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ModelFamily:
    """How a model's vectors are had.

    Args:
        name: of the family.
        model_class: name of its class in transformers.
        image: features of images; the model, and what its image processor made as tensors.
        text: features of texts; the model, and what its tokenizer made as tensors. None: images alone.
        dimensions: length of a vector, of the model's configuration.
        pads_fully: whether texts are padded to the model's limit, as it was trained, and attends to padding.
    """

    name: str
    model_class: str
    image: Callable[[Any, Mapping[str, Any]], Any]
    text: Callable[[Any, Mapping[str, Any]], Any] | None
    dimensions: Callable[[Any], int]
    pads_fully: bool = False


def _pooled_image(model: Any, inputs: Mapping[str, Any]) -> Any:
    return _pooled(model.get_image_features(**inputs))


def _pooled_text(model: Any, inputs: Mapping[str, Any]) -> Any:
    return _pooled(model.get_text_features(**inputs))


def _pooled(output: Any) -> Any:
    """The projected features; transformers 5 puts them into the pooled output."""
    return getattr(output, "pooler_output", output)


def _blip_image(model: Any, inputs: Mapping[str, Any]) -> Any:
    return model.vision_proj(model.vision_model(**inputs).last_hidden_state[:, 0])


def _blip_text(model: Any, inputs: Mapping[str, Any]) -> Any:
    return model.text_proj(model.text_encoder(**inputs).last_hidden_state[:, 0])


def _fused_image(model: Any, inputs: Mapping[str, Any]) -> Any:
    return model.image_vectors(**inputs)


def _fused_text(model: Any, inputs: Mapping[str, Any]) -> Any:
    return model.text_vectors(**inputs)


def _resnet_image(model: Any, inputs: Mapping[str, Any]) -> Any:
    return model(**inputs).pooler_output.flatten(1)


def _vit_image(model: Any, inputs: Mapping[str, Any]) -> Any:
    return model(**inputs).last_hidden_state[:, 0]


def _siglip_dimensions(config: Any) -> int:
    return int(config.text_config.projection_size)


FAMILIES: dict[str, ModelFamily] = {
    "clip": ModelFamily(
        "clip", "CLIPModel", _pooled_image, _pooled_text, lambda config: int(config.projection_dim)
    ),
    "magiclens": ModelFamily(
        "magiclens", "AutoModel", _fused_image, _fused_text, lambda config: int(config.projection_dim)
    ),
    "siglip": ModelFamily(
        "siglip", "SiglipModel", _pooled_image, _pooled_text, _siglip_dimensions, pads_fully=True
    ),
    "siglip2": ModelFamily(
        "siglip2", "Siglip2Model", _pooled_image, _pooled_text, _siglip_dimensions, pads_fully=True
    ),
    "blip": ModelFamily(
        "blip_itm",
        "BlipForImageTextRetrieval",
        _blip_image,
        _blip_text,
        lambda config: int(config.image_text_hidden_size),
    ),
    "resnet": ModelFamily(
        "resnet", "ResNetModel", _resnet_image, None, lambda config: int(config.hidden_sizes[-1])
    ),
    "vit": ModelFamily("vit", "ViTModel", _vit_image, None, lambda config: int(config.hidden_size)),
}
"""By the `model_type` of a model's configuration."""
