"""First weights of CIRPLANT: the folder of a BERT, or of an OSCAR: a BERT with a layer for images.

Only weights are read from a file, never code.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submissions.errors import CheckpointError
from submissions.methods.heads.checkpoints import CONFIG, WEIGHTS, file_sha256, read_tensors
from submissions.methods.heads.wordpieces import POSITIONS, load_tokenizer

if TYPE_CHECKING:
    from torch import Tensor

    from submissions.methods.heads.composition import CirplantNetwork

BERT_SETTINGS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "max_position_embeddings",
    "type_vocab_size",
    "initializer_range",
    "layer_norm_eps",
    "pad_token_id",
)
"""What of a BERT's configuration its shape and its training depend on."""

_PICKLE = "pytorch_model.bin"
_IMAGES = "img_embedding"
_EXAMPLES = 5
_FIX = "Fix: name a folder of a BERT as transformers saves it, or of an OSCAR."


@dataclass(frozen=True)
class BertFolder:
    """A BERT's or OSCAR's folder as it was read.

    Args:
        folder: where it lies.
        settings: of its configuration, those of `BERT_SETTINGS`.
        tokenizer: its word pieces.
        tensors: its weights by the names that `BertModel` gives them, with OSCAR's own.
        sha256: of the file of weights.
    """

    folder: Path
    settings: Mapping[str, Any]
    tokenizer: Any
    tensors: Mapping[str, Tensor]
    sha256: str

    def fill(self, network: CirplantNetwork) -> str:
        """Put the weights into a network.

        Returns:
            What was put in and what was not, in one sentence.

        Raises:
            CheckpointError: a weight of the BERT is missing, or has another shape.
        """
        wanted = network.bert.state_dict()
        odd = [
            name
            for name, value in wanted.items()
            if name not in self.tensors or self.tensors[name].shape != value.shape
        ]
        if odd:
            raise CheckpointError(
                f"{self.folder}: {len(odd):,} weights of its BERT are missing or of another shape than "
                f"{CONFIG} says: {', '.join(odd[:_EXAMPLES])}. {_FIX}"
            )
        network.bert.load_state_dict({name: self.tensors[name] for name in wanted})
        return f"{self.folder}: {len(wanted):,} weights of a BERT; {self._images(network)}"

    def _images(self, network: CirplantNetwork) -> str:
        weight, bias = (self.tensors.get(f"{_IMAGES}.{part}") for part in ("weight", "bias"))
        if weight is None or bias is None:
            return "it has no layer for images, so that the projection begins at random."
        layer = network.projection
        if weight.shape != layer.weight.shape or bias.shape != layer.bias.shape:
            return (
                f"its layer for images takes {weight.shape[-1]:,} numbers and this encoder gives "
                f"{layer.weight.shape[1]:,}, so that the projection begins at random."
            )
        layer.load_state_dict({"weight": weight, "bias": bias})
        return "the projection begins with its layer for images."


def read_bert_folder(folder: str | Path) -> BertFolder:
    """Read configuration, word pieces and weights of a BERT or OSCAR.

    Args:
        folder: with `config.json`, a tokenizer, and `model.safetensors` or `pytorch_model.bin`.

    Raises:
        CheckpointError: one is missing, damaged, or of another kind.
    """
    root = Path(folder).expanduser()
    settings = _settings(root)
    tokenizer = load_tokenizer(root)
    if len(tokenizer) > settings["vocab_size"]:
        raise CheckpointError(
            f"{root}: its tokenizer knows {len(tokenizer):,} tokens, its {CONFIG} says "
            f"{settings['vocab_size']:,}. {_FIX}"
        )
    path = root / (WEIGHTS if (root / WEIGHTS).is_file() else _PICKLE)
    tensors = read_tensors(path) if path.name == WEIGHTS else _pickled(path)
    named = {_plain(name): value for name, value in tensors.items()}
    return BertFolder(root, settings, tokenizer, named, file_sha256(path))


def _settings(root: Path) -> dict[str, Any]:
    path = root / CONFIG
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: cannot be read as JSON ({error}). {_FIX}") from error
    needed = BERT_SETTINGS[:5]
    lacking = (
        needed if not isinstance(described, dict) else [name for name in needed if name not in described]
    )
    if lacking:
        raise CheckpointError(f"{path}: lacks {', '.join(lacking)}, so it is not a BERT's. {_FIX}")
    settings = {name: described[name] for name in BERT_SETTINGS if name in described}
    if settings.get("max_position_embeddings", POSITIONS) < POSITIONS:
        raise CheckpointError(
            f"{path}: reads {settings['max_position_embeddings']} tokens; CIRPLANT reads {POSITIONS}. {_FIX}"
        )
    return settings


def _pickled(path: Path) -> dict[str, Tensor]:
    import torch

    if not path.is_file():
        raise CheckpointError(f"{path.parent}: holds neither {WEIGHTS} nor {_PICKLE}. {_FIX}")
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, ValueError, TypeError) as error:
        # What torch says then is how to run the code in such a file: no advice to pass on.
        raise CheckpointError(f"{path}: not a file of weights alone, as torch writes it. {_FIX}") from error
    if not isinstance(held, dict):
        raise CheckpointError(f"{path}: holds a {type(held).__name__}, not weights by name. {_FIX}")
    return {name: value for name, value in held.items() if isinstance(value, torch.Tensor)}


def _plain(name: str) -> str:
    """A weight's name as `BertModel` has it; old checkpoints call a norm's weights gamma and beta."""
    short = name.removeprefix("module.").removeprefix("bert.")
    return short.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
