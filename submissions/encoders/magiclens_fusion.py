"""MagicLens' fusion of one image vector and one text vector into one query vector.

Source: Zhang et al., MagicLens: Self-Supervised Image Retrieval with Open-Ended Instructions, ICML 2024,
arXiv:2403.19651: self-attention over the two vectors as tokens, then attention pooling with one learned
question. Layer by layer as in the release (github.com/google-deepmind/magiclens), so that its weights can be
brought over (docs/training.md). Imported only where a method needs torch.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

_CAP = 50.0
"""Attention logits are squashed into (-50, 50)."""
_EPSILON = 1e-6


class Fusion(nn.Module):
    """Two tokens in, one vector of length 1 out.

    Args:
        vector_size: dimensions of both vectors and of the result.
        layers: layers of self-attention, 1 or more.
        heads: heads of every attention; a divisor of `vector_size`.
        feed_forward: width of the layer inside each feed-forward block.
    """

    def __init__(self, vector_size: int, layers: int = 4, heads: int = 8, feed_forward: int = 2048) -> None:
        """Make it with random weights."""
        super().__init__()
        self.layers = nn.ModuleList(_Layer(vector_size, heads, feed_forward) for _ in range(layers))
        self.question = nn.Parameter(torch.randn(1, 1, vector_size) * vector_size**-0.5)
        self.pool = _Attention(vector_size, 4 * vector_size, heads, per_dimension=True)
        self.pool_norm = nn.LayerNorm(vector_size, eps=_EPSILON)

    def forward(self, images: Tensor, texts: Tensor, shown: Tensor | None = None) -> Tensor:
        """Fuse images and texts, pair by pair.

        Args:
            images: features of images, shape (n, vector_size), not brought to length 1.
            texts: features of texts, shape (n, vector_size), not brought to length 1.
            shown: shape (n,), false where there is no image: the text is then the only token. None: all are.

        Returns:
            Shape (n, vector_size), float32, rows of length 1.
        """
        tokens = torch.stack([images, texts], dim=1)
        present = torch.ones(tokens.shape[:2], dtype=torch.bool, device=tokens.device)
        if shown is not None:
            present[:, 0] = shown
        for layer in self.layers:
            tokens = layer(tokens, present)
        pooled = self.pool(self.question.expand(len(tokens), -1, -1), tokens, present)
        return nn.functional.normalize(self.pool_norm(pooled)[:, 0].float(), dim=-1)


class _Layer(nn.Module):
    """Self-attention and a feed-forward block, each after a norm and with a way around it."""

    def __init__(self, size: int, heads: int, feed_forward: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size, eps=_EPSILON)
        self.attention = _Attention(size, size, heads, per_dimension=False)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(size, eps=_EPSILON),
            nn.Linear(size, feed_forward),
            nn.ReLU(),
            nn.Linear(feed_forward, size),
        )

    def forward(self, tokens: Tensor, present: Tensor) -> Tensor:
        normed = self.norm(tokens)
        tokens = tokens + self.attention(normed, normed, present)
        fed: Tensor = tokens + self.feed_forward(tokens)
        return fed


class _Attention(nn.Module):
    """Attention of several heads with squashed logits.

    Args:
        size: dimensions of tokens.
        inner: dimensions of all heads together.
        heads: their number.
        per_dimension: whether questions are scaled by a learned factor a dimension, not by 1 / sqrt(d) alone.
    """

    def __init__(self, size: int, inner: int, heads: int, *, per_dimension: bool) -> None:
        super().__init__()
        self.heads = heads
        self.ask = nn.Linear(size, inner)
        self.key = nn.Linear(size, inner)
        self.value = nn.Linear(size, inner)
        self.out = nn.Linear(inner, size)
        self.scale = nn.Parameter(torch.ones(inner // heads)) if per_dimension else None

    def forward(self, questions: Tensor, tokens: Tensor, present: Tensor) -> Tensor:
        asked, keys, values = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.ask(questions), self.key(tokens), self.value(tokens))
        )
        root = 1.0 / math.sqrt(asked.shape[-1])
        # 1 / ln 2: the factor is then 1 where the learned number is 0.
        factor = root if self.scale is None else nn.functional.softplus(self.scale) * root / math.log(2.0)
        logits = _CAP * torch.tanh((asked * factor) @ keys.transpose(-1, -2) / _CAP)
        weights = logits.masked_fill(~present[:, None, None, :], -torch.inf).softmax(dim=-1)
        out: Tensor = self.out((weights @ values).transpose(1, 2).flatten(-2))
        return out
