"""Checkpoints of Pic2Word in its authors' layout: one file of torch, with the mapping network inside.

The file holds `state_dict_img2text` (`layers.N.0` and `fc_out`, each name after "module."), and
`state_dict`, the CLIP that it was trained on. That network reads an image's features before they are brought
to length 1, unlike ours. Imported only where a method needs torch.

Source: the authors' release, github.com/google-research/composed_image_retrieval (src/trainer.py,
model/model.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from submissions.errors import CheckpointError
from submissions.methods.heads.checkpoints import Head, file_sha256, read_torch
from submissions.methods.heads.pseudo_words import PseudoWords

RAW = "features"
"""What the network reads: an image's features as the image encoder gives them."""

_FIX = "Fix: name the file of the authors, or a folder that train_pic2word wrote."
_PREFIX = "module."
_LAYER = re.compile(r"layers\.(\d+)\.0\.(weight|bias)")
_TABLE = "token_embedding.weight"
_NEAR = 1e-2
"""How far half precision may move an embedding of CLIP, whose values are below 1."""


def load_published(path: Path, words: PseudoWords, dimensions: int) -> Head:
    """Read the mapping network out of a file in the authors' layout.

    Args:
        path: the file.
        words: the text encoder that it is to be used with.
        dimensions: of that encoder's vectors.

    Raises:
        CheckpointError: the file is damaged, of another kind, or made for another CLIP.
    """
    # The optimizer's part of such files holds numbers of numpy.
    make_number: Any = np.float64(0).__reduce__()[0]
    modules = ("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar")
    harmless = [*((make_number, name) for name in modules), np.dtype, np.dtypes.Float64DType]
    held = read_torch(path, _FIX, harmless)
    found = held.get("state_dict_img2text")
    if not isinstance(found, dict):
        raise CheckpointError(f"{path}: holds no state_dict_img2text. {_FIX}")
    tensors = _renamed(path, found)
    inner, outer = tensors["layers.0.weight"], tensors["layers.6.weight"]
    if inner.shape[1] != dimensions or outer.shape[0] != words.token_size:
        raise CheckpointError(
            f"{path}: maps {inner.shape[1]} dimensions to words of {outer.shape[0]}; this encoder has "
            f"{dimensions} and {words.token_size}. Fix: use the CLIP that it was trained on (ViT-L/14)."
        )
    _check_clip(path, held.get("state_dict"), words)
    sizes = {"vector_size": dimensions, "token_size": words.token_size, "hidden_size": inner.shape[0]}
    return Head(path, sizes, {"input": RAW}, tensors, file_sha256(path))


def _renamed(path: Path, found: Mapping[str, Any]) -> dict[str, Tensor]:
    """The weights under the names of our network: layers 0, 3 and 6 of it are the linear ones."""
    tensors = {}
    for name, value in found.items():
        short = name.removeprefix(_PREFIX)
        layer = _LAYER.fullmatch(short)
        if layer is not None:
            short = f"layers.{3 * int(layer[1])}.{layer[2]}"
        elif short.startswith("fc_out."):
            short = f"layers.6.{short.removeprefix('fc_out.')}"
        tensors[short] = value.float() if isinstance(value, Tensor) else value
    wanted = {f"layers.{layer}.{part}" for layer in (0, 3, 6) for part in ("weight", "bias")}
    if tensors.keys() != wanted or not all(
        isinstance(value, Tensor) and value.ndim == (2 if name.endswith("weight") else 1)
        for name, value in tensors.items()
    ):
        raise CheckpointError(
            f"{path}: its mapping network holds {', '.join(sorted(found)[:6])}; three fully connected layers "
            f"(layers.0.0, layers.1.0, fc_out) are read. {_FIX}"
        )
    return tensors


def _check_clip(path: Path, clip: Any, words: PseudoWords) -> None:
    """Refuse another CLIP than the one in the file, where there is one."""
    if not isinstance(clip, dict):
        return
    table = clip.get(_PREFIX + _TABLE, clip.get(_TABLE))
    ours = words.token_embedding
    if not isinstance(table, Tensor):
        return
    if table.shape != ours.shape or float((table.float() - ours.cpu().float()).abs().max()) > _NEAR:
        raise CheckpointError(
            f"{path}: the CLIP inside has other embeddings of words than this encoder. "
            "Fix: use the CLIP that it was trained on (openai/clip-vit-large-patch14)."
        )
