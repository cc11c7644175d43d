"""Chance: a random order, the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from submissions.methods.turns import Candidates, Turn
from submissions.rank_file.model import Method


class Random:
    """Scores drawn from a hash of turn and image: no order and no library's version matters."""

    needs_pictures: ClassVar[bool] = False
    aggregation: ClassVar[Literal["latest", "average"]] = "latest"

    def method(self) -> Method:
        """Who answers."""
        return Method(
            name="Random",
            backbone="none",
            zero_shot=True,
            notes="A random order from a hash of query and image. Needs no weights.",
        )

    def scores(self, turns: Sequence[Turn], gallery: Candidates) -> NDArray[np.float64]:
        """Uniform numbers in [0, 1), shape (turns, images)."""
        queries = _hashes(turn.key for turn in turns)
        images = _hashes(gallery.ids)
        return _mixed(queries[:, None] ^ (images[None, :] * np.uint64(0x9E3779B97F4A7C15)))


def _hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def _mixed(state: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Two rounds of multiply and shift (the finisher of splitmix64): every bit depends on every bit."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((state ^ (state >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
