"""Recall on queries that are not trained on, after each epoch: the best weights are kept, and patience ends.

CIRPLANT's release keeps the weights of the best subset recall at 1; that a training ends early is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.registry.suites import mean_over_members
from cir_metrics.gallery import Gallery
from cir_metrics.ranking import target_ranks
from cir_metrics.sums import exact_mean

if TYPE_CHECKING:
    from torch import nn

Vectors = NDArray[np.float32]

RECALLS = ("recall@1", "recall@10", "recall_subset@1")
"""What is measured."""


@dataclass(frozen=True, eq=False)
class Validation:
    """Queries with their answers among images that are there as rows.

    Args:
        references: row of each query's reference, -1 where there is none, shape (queries,).
        targets: rows of each query's targets.
        subsets: rows of each query's subset without its reference; empty where there is none.
        excluded: whether the reference is removed from the ranking.
    """

    references: NDArray[np.int64]
    targets: list[NDArray[np.int64]]
    subsets: list[NDArray[np.int64]]
    excluded: bool

    def recalls(self, queries: Vectors, images: Vectors) -> dict[str, float]:
        """Recall of composed queries, by name; the subset's where all queries have one.

        Args:
            queries: shape (queries, dimensions), rows of length 1.
            images: shape (images, dimensions), rows of length 1.
        """
        removed = self.references if self.excluded else np.full(len(queries), -1, dtype=np.int64)
        ranks = Gallery(images).best_target_ranks(queries, self.targets, excluded=removed)
        found = {f"recall@{k}": exact_mean(ranks <= k) for k in (1, 10)}
        if self.has_subsets:
            firsts = [self._subset_rank(query, row, images) == 1 for row, query in enumerate(queries)]
            found["recall_subset@1"] = exact_mean(firsts)
        return found

    def _subset_rank(self, query: Vectors, row: int, images: Vectors) -> int:
        members = self.subsets[row]
        scores = (images[members].astype(np.float64) * query.astype(np.float64)).sum(axis=1)
        place = np.flatnonzero(members == self.targets[row][0])
        return int(target_ranks(scores[None], place)[0]) if len(place) else len(members) + 1

    @property
    def has_subsets(self) -> bool:
        """Whether every query has a subset."""
        return all(len(members) for members in self.subsets)


def main_recall(members: Sequence[Validation]) -> str:
    """The recall that decides: the subset's, where all queries of all benchmarks have one."""
    return "recall_subset@1" if all(member.has_subsets for member in members) else "recall@10"


def mean_recalls(members: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """A suite's recalls: of those that all members have, the mean over the members; of one, its recalls.

    Example:
        >>> mean_recalls([{"recall@1": 0.25, "recall_subset@1": 0.5}, {"recall@1": 0.75}])
        {'recall@1': 0.5}
    """
    common = [name for name in members[0] if all(name in member for member in members)]
    return {name: mean_over_members(name, [member[name] for member in members], ()) for name in common}


@dataclass
class BestEpoch:
    """Keeps the weights of the epoch with the best recall, and ends a training that gets no better.

    Args:
        measure: the recalls of a module, by name.
        main: the recall that decides; of equal ones the first epoch's weights stay.
        patience: epochs without a better one after which the training ends; 0 never ends it.
        say: gets a line an epoch.
    """

    measure: Callable[[nn.Module], dict[str, float]]
    main: str
    patience: int = 0
    say: Callable[[str], None] = lambda line: None
    history: list[dict[str, float]] = field(default_factory=list)
    weights: dict[str, Any] = field(default_factory=dict)

    @property
    def seen(self) -> int:
        """The steps at which it looked last."""
        return int(self.history[-1]["step"]) if self.history else 0

    @property
    def best(self) -> int:
        """The epoch with the best recall, from 0; -1 before the first."""
        values = [each[self.main] for each in self.history]
        return int(np.argmax(values)) if values else -1

    @property
    def stopped(self) -> bool:
        """Whether patience is at its end."""
        return bool(self.patience) and len(self.history) - 1 - self.best >= self.patience

    def look(self, module: nn.Module, step: int) -> None:
        """Measure, and keep the weights where they are the best so far."""
        self.history.append({"step": step, **self.measure(module)})
        if self.best == len(self.history) - 1:
            self.weights = {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}
        values = {name: self.history[-1][name] for name in RECALLS if name in self.history[-1]}
        shown = ", ".join(f"{name} {100 * value:.2f}" for name, value in values.items())
        self.say(f"step {step:,}: {shown}")

    def state(self) -> dict[str, Any]:
        """History and weights."""
        return {"history": self.history, "weights": self.weights}

    def take_up(self, state: dict[str, Any]) -> None:
        """Put them back."""
        self.history, self.weights = list(state["history"]), dict(state["weights"])
