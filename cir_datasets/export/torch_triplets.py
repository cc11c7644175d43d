"""Training triplets as a dataset of torch; imported only by `Triplets.to_torch`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch.utils.data import IterableDataset

from cir_datasets.export.triplets import Triplet

if TYPE_CHECKING:
    from cir_datasets.export.triplets import Triplets


class TorchTriplets(IterableDataset[Triplet]):
    """A stream of triplets for a DataLoader: its workers share it, each triplet comes once.

    Args:
        triplets: what to give.
    """

    def __init__(self, triplets: Triplets) -> None:
        """Keep them; workers read for themselves."""
        self.triplets = triplets

    def __iter__(self) -> Iterator[Triplet]:
        """The share of the worker that asks, or everything outside of a worker."""
        return iter(self.triplets)

    def __len__(self) -> int:
        """Number of triplets of all workers together."""
        return len(self.triplets)
