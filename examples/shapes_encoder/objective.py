"""The loss of the shapes encoder, in a file of its own: it is an equation with sources.

It is contrastive, and knows which captions are true of which pictures.

Source: the loss of CLIP (Radford et al., Learning Transferable Visual Models From Natural Language
Supervision, ICML 2021), with several positives a row as in supervised contrastive learning (Khosla et al.,
NeurIPS 2020: the mean of the positives' logarithms). Imported only where torch is there.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import log_softmax


def contrastive_loss(images: Tensor, texts: Tensor, true: Tensor, scale: Tensor) -> Tensor:
    """Cross entropy in both directions, every true pair of a row being equally right.

    L = -1/2 * mean over captions c of mean over p in P(c) of log softmax_p(scale * c . images)
        -1/2 * mean over pictures i with captions of mean over c in C(i) of log softmax_c(scale * i . texts)

    Args:
        images: vectors of length 1, shape (n, d).
        texts: vectors of length 1, shape (m, d).
        true: whether each caption is true of each picture, bool, shape (m, n); each caption is true of one.
        scale: what cosines are multiplied with.

    Returns:
        The loss, one number.

    Example:
        >>> import torch
        >>> same = torch.eye(2)
        >>> round(float(contrastive_loss(same, same, same.bool(), torch.tensor(1.0))), 4)
        0.3133
    """
    scores = scale * texts @ images.T
    weights = true.to(scores.dtype)
    by_text = (log_softmax(scores, dim=1) * weights).sum(1) / weights.sum(1)
    by_image = (log_softmax(scores, dim=0) * weights).sum(0) / weights.sum(0).clamp(min=1)
    return -(by_text.mean() + by_image.mean()) / 2


def offset(images: Tensor, texts: Tensor) -> Tensor:
    """How far pictures and texts lie from the origin as wholes: the squared lengths of both means, added.

    Small means leave no gap between the two kinds of vectors, so that their sum says as much of one as of the
    other.

    Args:
        images: vectors of length 1, shape (n, d).
        texts: vectors of length 1, shape (m, d).
    """
    return images.mean(0).square().sum() + texts.mean(0).square().sum()
