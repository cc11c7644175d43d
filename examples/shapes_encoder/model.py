"""The model and its processor: CLIP's architecture, small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cir_datasets.shapes import SIDE
from examples.shapes_encoder.words import LONGEST, SPECIAL, make_tokenizer, vocabulary
from submissions.encoders.pretrained import quiet

_VISION = {
    "image_size": SIDE,
    "patch_size": 16,
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "hidden_act": "gelu",
}
_TEXT = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "hidden_act": "gelu",
    "max_position_embeddings": LONGEST,
}
PROJECTION = 128
"""Dimensions of a vector."""


def make_model(scale: float) -> Any:
    """The model with random weights; `torch.manual_seed` decides them.

    Args:
        scale: what cosines are multiplied with at the start (its logarithm is learned).
    """
    import math

    from transformers import CLIPConfig, CLIPModel

    padding, start, _, end = range(len(SPECIAL))
    text = {
        **_TEXT,
        "vocab_size": len(vocabulary()),
        "pad_token_id": padding,
        "bos_token_id": start,
        "eos_token_id": end,
    }
    config = CLIPConfig(
        text_config=text,
        vision_config=dict(_VISION),
        projection_dim=PROJECTION,
        logit_scale_init_value=math.log(scale),
    )
    return CLIPModel(config)


def make_image_processor() -> Any:
    """What turns a picture into the model's pixels: 96 x 96, values from -1 to 1."""
    from transformers import CLIPImageProcessorPil

    return CLIPImageProcessorPil(
        size={"height": SIDE, "width": SIDE},
        do_center_crop=False,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )


def save(model: Any, folder: Path) -> None:
    """Write model, tokenizer and image processor so that transformers' `Auto` classes load them."""
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    with quiet(transformers):
        model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    make_image_processor().save_pretrained(folder)
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)  # transformers makes it the owner's alone
