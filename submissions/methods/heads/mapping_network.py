"""Pic2Word's mapping network: an image's vector becomes one word of the text encoder.

Source: Saito et al., Pic2Word: Mapping Pictures to Words for Zero-shot Composed Image Retrieval, CVPR 2023,
arXiv:2302.03084. Imported only where a method or its training needs torch.
"""

from __future__ import annotations

from torch import Tensor, nn


class MappingNetwork(nn.Module):
    """Three fully connected layers, ReLU and dropout between them.

    Args:
        vector_size: dimensions of an image's vector.
        token_size: dimensions of a token's embedding in the text encoder.
        hidden_size: width of the two layers between.
        dropout: share of the units left out in training, in [0, 1).
    """

    def __init__(
        self, vector_size: int, token_size: int, hidden_size: int = 512, dropout: float = 0.1
    ) -> None:
        """Make it with random weights."""
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(vector_size, hidden_size),
            nn.Dropout(dropout),
            nn.ReLU(),
            nn.Linear(hidden_size, hidden_size),
            nn.Dropout(dropout),
            nn.ReLU(),
            nn.Linear(hidden_size, token_size),
        )

    def forward(self, vectors: Tensor) -> Tensor:
        """Pseudo words of images, shape (n, token_size), of their vectors, shape (n, vector_size)."""
        mapped: Tensor = self.layers(vectors)
        return mapped
