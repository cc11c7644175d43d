"""Random numbers that are the same on every machine and in every version of Python.

`random` and `numpy.random` promise a stream of bits, not the values of their methods. Here a number is a
32-bit word of a blake2b digest of a name and a counter, and everything else is integer arithmetic.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

_WORDS = struct.Struct("<16I")


class Draws:
    """A stream of random draws that its name decides entirely.

    Args:
        name: anything whose text is stable (numbers and words); equal names give equal draws.

    Example:
        >>> Draws("example", 1).below(100) == Draws("example", 1).below(100)
        True
        >>> Draws("example", 1).sample("abcdef", 3)
        ['e', 'c', 'a']
    """

    def __init__(self, *name: int | str) -> None:
        """Start the stream of that name."""
        self._name = "/".join(str(part) for part in name).encode()
        self._block = 0
        self._words: list[int] = []

    def below(self, n: int) -> int:
        """A whole number of 0..n-1, all equally likely (to one part in 2**32 / n)."""
        if not self._words:
            data = self._name + b"#" + self._block.to_bytes(8, "little")
            self._words = list(_WORDS.unpack(hashlib.blake2b(data, digest_size=64).digest()))
            self._block += 1
        return (self._words.pop() * n) >> 32

    def chance(self, percent: int) -> bool:
        """True in `percent` of a hundred draws."""
        return self.below(100) < percent

    def choice(self, items: Sequence[Item]) -> Item:
        """One of the items, all equally likely."""
        return items[self.below(len(items))]

    def weighted(self, items: Sequence[tuple[Item, int]]) -> Item:
        """One of the items, each as likely as its whole-numbered weight says."""
        left = self.below(sum(weight for _, weight in items))
        for item, weight in items:
            if left < weight:
                return item
            left -= weight
        return items[-1][0]

    def sample(self, items: Sequence[Item], k: int) -> list[Item]:
        """`k` different items (all of them when there are fewer), in random order."""
        pool = list(items)
        k = min(k, len(pool))
        for i in range(k):
            j = i + self.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:k]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """All items in random order."""
        return self.sample(items, len(items))
