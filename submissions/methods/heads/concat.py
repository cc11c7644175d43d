"""CIRR's concatenation baseline: two vectors end to end, and a perceptron of two layers on them.

Source: Liu et al., Image Retrieval on Real-life Images with Pre-trained Vision-and-Language Models, ICCV
2021, arXiv:2108.04024, section 5 and appendix (after Vo et al., CVPR 2019, arXiv:1812.07119). Imported only
where a method or its training needs torch.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class ConcatHead(nn.Module):
    """q = W2 relu(W1 [image; text]), brought to length 1.

    Args:
        vector_size: dimensions of both vectors and of the result.
        hidden_size: width of the layer between.
        scale: what similarities are multiplied with in training, to begin with; it is learned.
    """

    def __init__(self, vector_size: int, hidden_size: int, scale: float = 4.0) -> None:
        """Make it with random weights."""
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2 * vector_size, hidden_size), nn.ReLU(), nn.Linear(hidden_size, vector_size)
        )
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))

    def forward(self, images: Tensor, texts: Tensor) -> Tensor:
        """Query vectors of length 1, shape (n, vector_size)."""
        return nn.functional.normalize(self.layers(torch.cat([images, texts], dim=-1)), dim=-1)


def soft_triplet_loss(similarities: Tensor, rivals: Tensor) -> Tensor:
    """Mean over queries of the mean of log(1 + exp(s(query, other target) - s(query, target))).

    Source: Vo et al., CVPR 2019, equation 3, with every other target of the batch as a negative.

    Args:
        similarities: shape (n, n); those of queries and their targets on the diagonal.
        rivals: shape (n, n), true where another's target is not a positive of the query.
    """
    losses = nn.functional.softplus(similarities - similarities.diagonal()[:, None]) * rivals
    return (losses.sum(dim=1) / rivals.sum(dim=1).clamp(min=1)).mean()


def batch_softmax_loss(similarities: Tensor, rivals: Tensor) -> Tensor:
    """Cross entropy of each query's target among the targets of the batch that are not positives of it.

    Source: Vo et al., CVPR 2019, equation 2.

    Args:
        similarities: shape (n, n); those of queries and their targets on the diagonal.
        rivals: shape (n, n), true where another's target is not a positive of the query.
    """
    kept = rivals | torch.eye(len(rivals), dtype=torch.bool, device=rivals.device)
    places = torch.arange(len(rivals), device=rivals.device)
    return nn.functional.cross_entropy(similarities.masked_fill(~kept, -torch.inf), places)
