"""CLIP models in OpenCLIP's own format, as transformers' CLIP: same weights under other names.

A folder holds `open_clip_config.json`, the weights, and the tokenizer in Hugging Face format. Vision
transformers that pool by the class token and causal text transformers are converted; ResNets, timm towers,
text towers of other libraries, CoCa and attention pooling are refused by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.common.yaml import package_yaml
from submissions.errors import EncoderError

if TYPE_CHECKING:
    from torch import Tensor

CONFIG = "open_clip_config.json"
WEIGHTS = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
    "open_clip_model.bin",
)
"""Names that OpenCLIP has used, newest first."""

FILES = (CONFIG, *WEIGHTS[:2], "*token*.json", "vocab.json", "merges.txt")
"""What is taken of a repository on the Hub."""

_RESAMPLING = {"bicubic": 3, "bilinear": 2}
_OPENAI_MEAN = (0.48145466, 0.4578275, 0.40821073)
_OPENAI_STD = (0.26862954, 0.26130258, 0.27577711)
_HEAD_WIDTH = 64
_HIGHEST_TOKEN = 2
"""As end of text, this means to transformers' CLIP what OpenCLIP does: the token of the highest number."""

_BLOCK = re.compile(r"(?P<tower>visual\.)?transformer\.resblocks\.(?P<number>\d+)\.(?P<rest>.+)")


def _tables() -> Any:
    """What OpenCLIP's keys and weights are, by what is done with them."""
    return package_yaml("submissions", "encoders/openclip.yaml")


def load_open_clip(folder: Path, dtype: Any) -> tuple[Any, Any, Mapping[str, Any]]:
    """A model in OpenCLIP's format.

    Args:
        folder: holds the files.
        dtype: torch's, of the weights.

    Returns:
        transformers' CLIPModel, its image processor, and what from_pretrained reports of the weights.

    Raises:
        EncoderError: no CLIP of a kind that can be converted, or its files are damaged.
    """
    from transformers import CLIPModel

    whole = _described(folder)
    model_config = whole.get("model_cfg", whole)
    _check_keys(whole, folder)
    weights = converted(_weights(folder), folder)
    config = _config(model_config, weights, folder)
    made: Any = CLIPModel.from_pretrained(
        None, config=config, state_dict=weights, dtype=dtype, output_loading_info=True
    )
    model, report = made
    strange = sorted(weights.keys() - model.state_dict().keys())
    if strange:
        raise EncoderError(f"{folder}: {strange[0]!r} has no place in CLIP as configured. {_FIX}")
    side = config.vision_config.image_size
    return model, _image_processor(whole.get("preprocess_cfg", {}), side, folder), report


def converted(weights: Mapping[str, Tensor], folder: Path) -> dict[str, Tensor]:
    """OpenCLIP's weights under transformers' names.

    Args:
        weights: by OpenCLIP's names; those of the text tower with or without "text." before them.
        folder: for messages.

    Raises:
        EncoderError: a weight has no place in CLIP.
    """
    found: dict[str, Tensor] = {}
    renamed, turned = _tables()["renamed"], _tables()["turned"]
    for long_name, tensor in weights.items():
        name = long_name.removeprefix("module.").removeprefix("text.")
        block = _BLOCK.fullmatch(name)
        if block is not None:
            tower = "vision_model" if block["tower"] else "text_model"
            _add_block(found, f"{tower}.encoder.layers.{block['number']}", block["rest"], tensor)
        elif name in renamed:
            found[renamed[name]] = tensor
        elif name in turned:
            found[turned[name]] = tensor.T.contiguous()
        elif name not in ("attn_mask", "logit_bias"):
            raise EncoderError(f"{folder}: the weight {long_name!r} is of no CLIP that is known. {_FIX}")
    return found


def _add_block(found: dict[str, Tensor], layer: str, rest: str, tensor: Tensor) -> None:
    """Add a weight of one layer; those of query, key and value lie in one tensor."""
    if rest in ("attn.in_proj_weight", "attn.in_proj_bias"):
        kind = rest.rpartition("_")[2]
        for name, part in zip(("q_proj", "k_proj", "v_proj"), tensor.chunk(3), strict=True):
            found[f"{layer}.self_attn.{name}.{kind}"] = part.contiguous()
        return
    inside, _, kind = rest.rpartition(".")
    found[f"{layer}.{_tables()['in_block'].get(inside, inside)}.{kind}"] = tensor


_FIX = "Fix: use a copy of the model in Hugging Face format, or another model."


def _described(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(whole, dict) and isinstance(whole.get("model_cfg", whole), dict):
            return whole
    except (OSError, ValueError) as error:
        raise EncoderError(f"{path}: cannot be read: {error} Fix: get it again.") from error
    raise EncoderError(f"{path}: holds no configuration of a model. Fix: get it again.")


def _weights(folder: Path) -> dict[str, Any]:
    path = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if path is None:
        raise EncoderError(f"{folder}: no weights are in it ({' or '.join(WEIGHTS[:3])}). Fix: get them.")
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return dict(load_file(path))
    import torch

    loaded = torch.load(path, map_location="cpu", weights_only=True)
    return dict(loaded.get("state_dict", loaded))


def _check_keys(whole: Mapping[str, Any], folder: Path) -> None:
    """Refuse whatever the conversion would not heed: vectors of another model would look like this one's."""
    inner = whole.get("model_cfg", {key: value for key, value in whole.items() if key != "preprocess_cfg"})
    odd = [key for key in whole if "model_cfg" in whole and key not in ("model_cfg", "preprocess_cfg")]
    parts = {
        "model_cfg": inner,
        "vision_cfg": inner.get("vision_cfg", {}),
        "text_cfg": inner.get("text_cfg", {}),
        "preprocess_cfg": whole.get("preprocess_cfg", {}),
    }
    tables = _tables()
    for part, given in parts.items():
        if not isinstance(given, Mapping):
            raise EncoderError(f"{folder / CONFIG}: {part} is not an object. Fix: get it again.")
        prefix = "" if part == "model_cfg" else f"{part}."
        for key, value in given.items():
            if key in tables["as_clip"][part]:
                if value not in tables["as_clip"][part][key]:
                    odd.append(f"{prefix}{key}={value!r}")
            elif key not in (*tables["read"][part], *tables["idle"][part]):
                odd.append(f"{prefix}{key}")
    vision = parts["vision_cfg"]
    side = vision.get("image_size", 224)
    if isinstance(vision.get("layers"), list):
        odd.append(f"vision_cfg.layers={vision['layers']}")
    if not isinstance(side, int):
        odd.append(f"vision_cfg.image_size={side!r}")
    elif parts["preprocess_cfg"].get("size", side) not in (side, [side, side]):
        odd.append(f"preprocess_cfg.size={parts['preprocess_cfg']['size']!r}")
    if odd:
        raise EncoderError(f"{folder}: {', '.join(odd)}: a kind of model that is not converted. {_FIX}")


def _config(described: Mapping[str, Any], weights: Mapping[str, Tensor], folder: Path) -> Any:
    """Transformers' configuration; sizes are those of the weights."""
    from transformers import CLIPConfig

    vision, text = described.get("vision_cfg", {}), described.get("text_cfg", {})
    side = vision.get("image_size", 224)
    act = "quick_gelu" if described.get("quick_gelu") else "gelu"
    towers: dict[str, dict[str, Any]] = {}
    for tower in ("vision_model", "text_model"):
        first = f"{tower}.encoder.layers.0.mlp.fc1.weight"
        if first not in weights:
            raise EncoderError(f"{folder}: the weights {first!r} are not in its files. {_FIX}")
        inner, width = weights[first].shape
        towers[tower] = {
            "hidden_size": width,
            "intermediate_size": inner,
            "num_hidden_layers": sum(
                name.startswith(f"{tower}.") and name.endswith(".mlp.fc1.weight") for name in weights
            ),
            "hidden_act": act,
        }
    width = towers["vision_model"]["hidden_size"]
    patch = weights["vision_model.embeddings.patch_embedding.weight"].shape[-1]
    vocabulary = weights["text_model.embeddings.token_embedding.weight"].shape[0]
    return CLIPConfig(
        vision_config={
            **towers["vision_model"],
            "num_attention_heads": width // vision.get("head_width", _HEAD_WIDTH),
            "image_size": side,
            "patch_size": patch,
        },
        text_config={
            **towers["text_model"],
            "num_attention_heads": text.get("heads", 8),
            "vocab_size": vocabulary,
            "max_position_embeddings": weights["text_model.embeddings.position_embedding.weight"].shape[0],
            "eos_token_id": _HIGHEST_TOKEN,
            "bos_token_id": 0,
            "pad_token_id": 1,
        },
        projection_dim=weights["text_projection.weight"].shape[0],
    )


def _image_processor(described: Mapping[str, Any], side: int, folder: Path) -> Any:
    """Resizing, cropping and normalising as OpenCLIP does them for evaluation."""
    from transformers import CLIPImageProcessorPil

    mode = described.get("resize_mode", "shortest")
    resampling = _RESAMPLING.get(described.get("interpolation", "bicubic"))
    if mode not in ("shortest", "squash") or resampling is None:
        raise EncoderError(
            f"{folder}: preprocess_cfg asks for resize_mode {mode!r} and interpolation "
            f"{described.get('interpolation')!r}, which are not known. {_FIX}"
        )
    square = {"height": side, "width": side}
    return CLIPImageProcessorPil(
        size={"shortest_edge": side} if mode == "shortest" else square,
        crop_size=square,
        do_center_crop=mode == "shortest",
        resample=resampling,
        image_mean=list(described.get("mean", _OPENAI_MEAN)),
        image_std=list(described.get("std", _OPENAI_STD)),
    )
