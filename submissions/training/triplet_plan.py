"""How CIRPLANT is trained: what its released code and its paper do differently, its schedule, its sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cir_metrics.errors import CallError
from submissions.training.loop import Plan

DECAYS = ("epoch", "step")
"""When the learning rate of a linear decay is lowered; both count the steps of the whole training."""


@dataclass(frozen=True)
class Recipe:
    """What CIRPLANT's released code and its paper do differently.

    Args:
        squared: the distance is squared.
        composed_negatives: others' composed queries are negatives, too.
        triplets: negatives drawn for each query; 0 takes all of the batch.
        together: triplets of one reference that a batch has at a time. More than 1, which neither code nor
            paper has, gives queries negatives that look like their own target.
        normalised_input: the projected reference has length 1 before the transformer reads it.
        scaled: features are multiplied with a learned scale.
        halved_gradient: as the code's hand-written gradient is; AdamW sees it in the clipping only.
        decay: `epoch` lowers the learning rate once an epoch by one step's share, so that it hardly falls;
            `step` after every step, down to 0.
    """

    squared: bool = True
    composed_negatives: bool = True
    triplets: int = 6
    together: int = 1
    normalised_input: bool = False
    scaled: bool = True
    halved_gradient: bool = True
    decay: str = "epoch"


RECIPES = {
    "code": Recipe(),
    "paper": Recipe(
        squared=False,
        composed_negatives=False,
        triplets=1,
        normalised_input=True,
        scaled=False,
        halved_gradient=False,
        decay="step",
    ),
}
"""By name: what the released code does, and what the paper says."""


@dataclass(frozen=True)
class TripletPlan(Plan):
    """CIRPLANT's training: batches drawn with replacement, a linear decay, a gradient of length 1 at most.

    Args:
        epoch_steps: steps an epoch.
        decay: one of `DECAYS`.
    """

    epoch_steps: int = 1
    decay: str = "epoch"

    def rate(self, step: int) -> float:
        """The learning rate of a step.

        Example:
            >>> plan = TripletPlan(100, 8, 1.0, epoch_steps=10)
            >>> [round(plan.rate(step), 2) for step in (0, 50, 99)]
            [1.0, 0.95, 0.91]
        """
        done = step // self.epoch_steps if self.decay == "epoch" else step
        return self.learning_rate * (1.0 - done / self.steps)

    def steps_of_epoch(self, count: int) -> int:
        """Steps an epoch, whatever the number of rows."""
        return self.epoch_steps

    def rows(self, step: int, count: int) -> NDArray[np.int64]:
        """Which of `count` rows a step sees, drawn with replacement."""
        return np.random.default_rng([self.seed, step]).integers(count, size=self.batch_size)

    def log(self) -> str:
        """Which learning rate the training has, for a person."""
        last = self.rate(self.steps - 1)
        how = (
            "lowered once an epoch by a step's share, as the released code does"
            if self.decay == "epoch"
            else "lowered after every step, as the paper says"
        )
        return f"learning rate: linear from {self.learning_rate:g} to {last:g}, {how} (decay {self.decay})"


@dataclass(frozen=True)
class NetworkShape:
    """Sizes of a network that begins at random; BERT's base model unless said otherwise.

    Args:
        hidden_size: of words and features.
        layers: of the transformer.
        heads: of each of its attentions; a divisor of `hidden_size`.
        feed_forward: units of its feed-forward blocks; None is four times `hidden_size`.
        dropout: inside the transformer.
    """

    hidden_size: int = 768
    layers: int = 12
    heads: int = 12
    feed_forward: int | None = None
    dropout: float = 0.1

    def check(self) -> None:
        """Refuse sizes that make no network.

        Raises:
            CallError: one is out of range.
        """
        if min(self.hidden_size, self.layers, self.heads) < 1 or self.hidden_size % self.heads:
            raise CallError(
                f"hidden_size={self.hidden_size}, layers={self.layers}, heads={self.heads}; all are 1 or "
                "more, and heads divide hidden_size. Fix: 768, 12 and 12 are BERT's."
            )
        if not 0 <= self.dropout < 1:
            raise CallError(f"dropout={self.dropout}; it is from 0 to below 1. Fix: 0.1 is BERT's.")


SHAPES = {"cirplant": NetworkShape(), "tirg": NetworkShape(hidden_size=512, heads=1)}
"""The sizes of a composition that begins at random, unless said otherwise; TIRG's is of its paper."""
