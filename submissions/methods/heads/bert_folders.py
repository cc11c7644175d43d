"""First weights of CIRPLANT: the folder of a BERT, or of an OSCAR: a BERT with a layer for images.

Only weights are read from a file, never code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submissions.errors import CheckpointError
from submissions.methods.heads.checkpoints import (
    CONFIG,
    WEIGHTS,
    file_sha256,
    read_described,
    read_tensors,
    read_torch,
)
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
    path = next((root / name for name in (WEIGHTS, _PICKLE) if (root / name).is_file()), None)
    if path is None:
        raise CheckpointError(f"{root}: holds neither {WEIGHTS} nor {_PICKLE}. {_FIX}")
    tensors = read_tensors(path) if path.name == WEIGHTS else read_torch(path, _FIX)
    named = {_plain(name): value for name, value in tensors.items() if hasattr(value, "shape")}
    return BertFolder(root, settings, tokenizer, named, file_sha256(path))


def _settings(root: Path) -> dict[str, Any]:
    path = root / CONFIG
    described = read_described(path, "name a folder of a BERT as transformers saves it, or of an OSCAR")
    lacking = [name for name in BERT_SETTINGS[:5] if name not in described]
    if lacking:
        raise CheckpointError(f"{path}: lacks {', '.join(lacking)}, so it is not a BERT's. {_FIX}")
    settings = {name: described[name] for name in BERT_SETTINGS if name in described}
    if settings.get("max_position_embeddings", POSITIONS) < POSITIONS:
        raise CheckpointError(
            f"{path}: reads {settings['max_position_embeddings']} tokens; CIRPLANT reads {POSITIONS}. {_FIX}"
        )
    return settings


def _plain(name: str) -> str:
    """A weight's name as `BertModel` has it; old checkpoints call a norm's weights gamma and beta."""
    short = name.removeprefix("module.").removeprefix("bert.")
    return short.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
