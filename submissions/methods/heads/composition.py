"""CIRPLANT and TIRG: networks that make of an image's vector and a caption's tokens the vector of the target.

Both have three parts: a projection, which the gallery's images go through too; a composition; and a learned
scale that all vectors, brought to length 1, are multiplied with before distances are taken.

Sources: CIRPLANT: Liu et al., ICCV 2021, arXiv:2108.04024, section 3, and its released code. TIRG: Vo et al.,
CVPR 2019, arXiv:1812.07119, equations 2 and 3, and its released code. Imported only where a method or its
training needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Vectors = NDArray[np.float32]

SCALE = 4.0
"""What vectors of length 1 are multiplied with at first; TIRG's release, which CIRPLANT's follows."""

BOXES = 6
"""Zeros behind an image's vector: OSCAR's regions have their place in the picture there."""

DROPOUT = 0.3
"""Of the projected reference, not of the gallery's images."""


class CirplantNetwork(nn.Module):
    """A BERT over the caption's tokens and, behind them, one token that is the projected reference.

    The image's token has no position and no segment; what the last layer says there is the composed feature.

    Args:
        vector_size: dimensions of an image's vector.
        bert: the settings of transformers' `BertConfig`.
        normalised_input: bring the projected reference to length 1, as the paper says and its code does not.
    """

    def __init__(self, vector_size: int, bert: Mapping[str, Any], *, normalised_input: bool = False) -> None:
        """Make it with random weights."""
        from transformers import BertConfig, BertModel

        super().__init__()
        config = BertConfig(**bert)
        self.vector_size, self.normalised_input = vector_size, normalised_input
        self.bert = BertModel(config, add_pooling_layer=False)
        # Given at every call: where a checkpoint is read they would be empty.
        del self.bert.embeddings.position_ids, self.bert.embeddings.token_type_ids
        self.projection = nn.Linear(vector_size + BOXES, config.hidden_size)
        nn.init.normal_(self.projection.weight, std=config.initializer_range)
        nn.init.zeros_(self.projection.bias)
        self.dropout = nn.Dropout(DROPOUT)
        self.scale = nn.Parameter(torch.tensor(SCALE))

    def project(self, vectors: Tensor) -> Tensor:
        """Images in the space of composed features, shape (n, hidden size), of any length."""
        projected: Tensor = self.projection(nn.functional.pad(vectors, (0, BOXES)))
        return projected

    def forward(self, vectors: Tensor, tokens: Tensor, read: Tensor) -> Tensor:
        """Composed features, shape (n, hidden size), of any length.

        Args:
            vectors: of the references, shape (n, vector_size).
            tokens: of the captions, shape (n, positions).
            read: true where a token is not padding, shape (n, positions).
        """
        from transformers.masking_utils import create_bidirectional_mask

        places = torch.arange(tokens.shape[1], device=tokens.device)[None]
        words = self.bert.embeddings(tokens, token_type_ids=torch.zeros_like(tokens), position_ids=places)
        image = self.project(vectors)
        if self.normalised_input:
            image = nn.functional.normalize(image, dim=-1)
        whole = torch.cat([words, self.dropout(image)[:, None].to(words.dtype)], dim=1)
        seen = torch.cat([read, read.new_ones(len(read), 1)], dim=1)
        mask = create_bidirectional_mask(
            config=self.bert.config, inputs_embeds=whole, attention_mask=seen.long()
        )
        composed: Tensor = self.bert.encoder(whole, attention_mask=mask).last_hidden_state[:, -1]
        return composed


class TirgNetwork(nn.Module):
    """The reference's feature, gated by image and text, plus a residual of both.

    f = a sigmoid(gate(x, t)) x + b residual(x, t); x the projected image, t the last state of an LSTM over
    the caption, a and b learned, 1 and 10 at first.

    Args:
        vector_size: dimensions of an image's vector.
        vocabulary: number of tokens.
        hidden_size: of words, LSTM and features; 512 in the paper.
        padding: number of the padding token.
    """

    def __init__(self, vector_size: int, vocabulary: int, hidden_size: int, padding: int = 0) -> None:
        """Make it with random weights."""
        super().__init__()
        size = hidden_size
        self.projection = nn.Linear(vector_size, size)
        self.words = nn.Embedding(vocabulary, size, padding_idx=padding)
        self.lstm = nn.LSTM(size, size, batch_first=True)
        self.text = nn.Sequential(nn.Dropout(0.1), nn.Linear(size, size))
        self.gate = nn.Sequential(nn.BatchNorm1d(2 * size), nn.ReLU(), nn.Linear(2 * size, size))
        self.residual = nn.Sequential(
            nn.BatchNorm1d(2 * size),
            nn.ReLU(),
            nn.Linear(2 * size, 2 * size),
            nn.ReLU(),
            nn.Linear(2 * size, size),
        )
        self.parts = nn.Parameter(torch.tensor([1.0, 10.0]))
        self.scale = nn.Parameter(torch.tensor(SCALE))

    def project(self, vectors: Tensor) -> Tensor:
        """Images in the space of composed features, shape (n, hidden size), of any length."""
        projected: Tensor = self.projection(vectors)
        return projected

    def forward(self, vectors: Tensor, tokens: Tensor, read: Tensor) -> Tensor:
        """Composed features, shape (n, hidden size), of any length; arguments as of `CirplantNetwork`."""
        states, _ = self.lstm(self.words(tokens))
        last = read.sum(dim=1).clamp(min=1) - 1
        text = self.text(states[torch.arange(len(states), device=last.device), last])
        image = self.project(vectors)
        both = torch.cat([image, text], dim=1)
        gated = torch.sigmoid(self.gate(both)) * image
        composed: Tensor = self.parts[0] * gated + self.parts[1] * self.residual(both)
        return composed


def trimmed(tokens: NDArray[np.int64], padding: int, device: Any) -> tuple[Tensor, Tensor]:
    """Tokens of a batch without the columns that are padding in every row, and which are not padding.

    Padding is not attended to and the image's token has no position, so that nothing but time depends on it.

    Args:
        tokens: shape (n, positions).
        padding: number of the padding token.
        device: where they go.
    """
    read = tokens != padding
    width = max(1, int(read.sum(axis=1).max(initial=1)))
    shown, seen = (torch.from_numpy(each[:, :width].copy()).to(device) for each in (tokens, read))
    return shown, seen


def composed_vectors(
    network: CirplantNetwork | TirgNetwork,
    vectors: Vectors,
    tokens: NDArray[np.int64],
    padding: int,
    batch_size: int,
) -> Vectors:
    """Composed features of length 1, shape (n, hidden size), float32.

    Args:
        network: a composition, in evaluation.
        vectors: of the references, shape (n, vector size).
        tokens: of the captions, shape (n, positions).
        padding: number of the padding token.
        batch_size: rows at once.
    """
    device = network.scale.device

    def composed(part: slice) -> Tensor:
        seen = torch.from_numpy(np.array(vectors[part])).to(device)
        made: Tensor = network(seen, *trimmed(tokens[part], padding, device))
        return made

    return _in_batches(network, len(vectors), batch_size, composed)


def projected_vectors(network: CirplantNetwork | TirgNetwork, vectors: Vectors, batch_size: int) -> Vectors:
    """Images as the gallery has them: projected, of length 1, shape (n, hidden size), float32."""
    device = network.scale.device
    return _in_batches(
        network,
        len(vectors),
        batch_size,
        lambda part: network.project(torch.from_numpy(np.array(vectors[part])).to(device)),
    )


def _in_batches(
    network: CirplantNetwork | TirgNetwork, count: int, batch_size: int, features: Callable[[slice], Tensor]
) -> Vectors:
    parts = [np.empty((0, network.projection.out_features), dtype=np.float32)]
    with torch.inference_mode():
        for start in range(0, count, batch_size):
            made = features(slice(start, start + batch_size))
            parts.append(nn.functional.normalize(made.float(), dim=-1).cpu().numpy())
    return np.concatenate(parts)


COMPOSITIONS: dict[str, type[CirplantNetwork] | type[TirgNetwork]] = {
    "cirplant": CirplantNetwork,
    "tirg": TirgNetwork,
}
"""The modules by the name of the method."""
