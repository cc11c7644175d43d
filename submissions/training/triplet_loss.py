"""CIRPLANT's loss: soft triplets whose negatives are drawn from the batch, never from the query's own subset.

L = mean over triplets of log(1 + exp(d(q, t+) - d(q, n)))

The released code takes the squared l2 distance and draws n from the others' targets and the others' composed
queries; the paper says l2 distance and others' targets (its equation 1 has the sign reversed).

Source: Liu et al., ICCV 2021, arXiv:2108.04024, equation 1, and the released code. Imported only where a
training needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from submissions.methods.heads.composition import trimmed

if TYPE_CHECKING:
    from submissions.training.training_options import CompositionTraining
    from submissions.training.triplet_examples import TripletData


def drawn_negatives(allowed: Tensor, triplets: int) -> tuple[Tensor, Tensor]:
    """Pairs of a query and a negative, drawn with replacement by torch's generator on the CPU.

    Args:
        allowed: shape (n, m), true where column j may be a negative of query i.
        triplets: pairs a query; 0 takes all that there are. A query that has none gives no pair.

    Returns:
        Rows and columns of `allowed`, each of shape (pairs,).
    """
    if not triplets:
        rows, columns = allowed.nonzero(as_tuple=True)
        return rows, columns
    rows = allowed.any(dim=1).nonzero()[:, 0]
    if not len(rows):
        return rows, rows
    columns = torch.multinomial(allowed[rows].float(), triplets, replacement=True)
    return rows.repeat_interleave(triplets), columns.reshape(-1)


def triplet_loss(
    queries: Tensor, targets: Tensor, pool: Tensor, pairs: tuple[Tensor, Tensor], *, squared: bool
) -> Tensor:
    """Mean of log(1 + exp(d(query, own target) - d(query, negative))) over pairs; 0 where there are none.

    Args:
        queries: composed features, shape (n, dimensions).
        targets: their targets, shape (n, dimensions).
        pool: what negatives are drawn from, shape (m, dimensions).
        pairs: rows of `queries` and of `pool`, as `drawn_negatives` gives them.
        squared: take the square of the l2 distance.
    """
    rows, columns = pairs
    near, far = _distance(queries, targets, squared)[rows], _distance(queries[rows], pool[columns], squared)
    # The sum of nothing is 0 and has a gradient, where the mean would be NaN.
    return nn.functional.softplus(near - far).sum() / max(1, len(rows))


def _distance(a: Tensor, b: Tensor, squared: bool) -> Tensor:
    square = (a - b).square().sum(dim=-1)
    return square if squared else square.clamp(min=1e-12).sqrt()


@dataclass(frozen=True, eq=False)
class Objective:
    """The loss of a batch of rows.

    Args:
        network: the composition, on `device`.
        data: what is trained on.
        vectors: of its images, with a row of zeros more.
        tokens: of its captions.
        recipe: what code and paper do differently, of `resolved` options.
        padding: number of the padding token.
        device: where it is computed.
    """

    network: Any
    data: TripletData
    vectors: NDArray[np.float32]
    tokens: NDArray[np.int64]
    recipe: CompositionTraining
    padding: int
    device: Any

    def __call__(self, rows: NDArray[np.int64]) -> Tensor:
        """The loss of a batch, of rows of what is trained on."""
        examples, recipe = self.data.examples, self.recipe
        rows = self._drawn(rows)
        tokens, read = trimmed(self.tokens[examples.texts[rows]], self.padding, self.device)
        references, wanted = (
            torch.from_numpy(self.vectors[places]).to(self.device)
            for places in (examples.references[rows], examples.targets[rows])
        )
        queries = self.network(references, tokens, read)
        targets = self.network.project(wanted)
        # Distances in float32 also where the network is not: they are differences of near numbers.
        with torch.autocast(self.device.type, enabled=False):
            scale = self.network.scale.float()
            queries, targets = (
                scale * nn.functional.normalize(each.float(), dim=-1) for each in (queries, targets)
            )
            composed = bool(recipe.composed_negatives)
            pool = torch.cat([targets, queries]) if composed else targets
            allowed = torch.from_numpy(self.data.allowed(rows, composed=composed))
            pairs = drawn_negatives(allowed, recipe.triplets or 0)
            loss = triplet_loss(queries, targets, pool, pairs, squared=bool(recipe.squared))
        return (loss + loss.detach()) / 2 if recipe.halved_gradient else loss

    def _drawn(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of examples: the first of the batch's places, each with others of its reference beside it."""
        together = self.recipe.together
        firsts = places[: max(1, len(places) // together)]
        numbers = torch.randint(2**31, (len(firsts), together - 1)).numpy()
        rows = self.data.rows[firsts][:, None]
        if together > 1:
            rows = np.concatenate([rows, self.data.beside(firsts, numbers)], axis=1)
        return np.asarray(rows.reshape(-1))
