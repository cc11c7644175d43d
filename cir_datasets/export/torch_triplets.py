"""A stream for torch's DataLoader, in a file of its own: workers unpickle the class, which needs torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from torch.utils.data import IterableDataset

T_co = TypeVar("T_co", covariant=True)


class Stream(Protocol[T_co]):
    """What can be gone through again and again, and has a length."""

    def __iter__(self) -> Iterator[T_co]:
        """Its share of a DataLoader's worker, or everything outside of one."""

    def __len__(self) -> int:
        """All of it."""


class TorchTriplets(IterableDataset[T_co], Generic[T_co]):
    """A stream of triplets for a DataLoader: its workers share it, each triplet comes once.

    Args:
        triplets: what to give.
    """

    def __init__(self, triplets: Stream[T_co]) -> None:
        """Keep them; workers read for themselves."""
        self.triplets = triplets

    def __iter__(self) -> Iterator[T_co]:
        """The share of the worker that asks, or everything outside of a worker."""
        return iter(self.triplets)

    def __len__(self) -> int:
        """Number of triplets of all workers together."""
        return len(self.triplets)
