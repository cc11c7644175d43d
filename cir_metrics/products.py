"""Products of queries and a gallery, a block at a time, and how far each may lie from the true score.

A product of n dimensions errs by n * u / (1 - n * u) * |q| * |g| at most, u half the machine epsilon, in
whichever order BLAS adds the terms (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., equation
3.5).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cir_metrics.coding import IntArray
from cir_metrics.errors import InputError
from cir_metrics.inputs import as_array
from cir_metrics.sums import FloatArray

Vectors = NDArray[Any]
Piece = tuple[slice, Vectors, FloatArray]
"""Some queries, their products, and how far each of these may lie from the score."""

_SQUARED = 2**17
"""Numbers that are squared at once."""


class Products:
    """The products of a gallery with any queries.

    Args:
        embeddings: see `cir_metrics.gallery.Gallery`.

    Raises:
        InputError: wrong shape or type, a value that is not finite.

    Example:
        >>> gallery = Products([[0.5], [0.25]])
        >>> [[(_, scores, _)]] = gallery.blocks(np.array([[2.0]]), np.array([-1]), block=1, threads=1)
        >>> scores
        array([[1. , 0.5]])
    """

    def __init__(self, embeddings: ArrayLike) -> None:
        """Check the gallery."""
        self.vectors = check_embeddings(embeddings, "gallery")
        self._longest = float(_lengths(self.vectors, "gallery").max())

    def blocks(self, queries: Vectors, dropped: IntArray, block: int, threads: int) -> Iterator[list[Piece]]:
        """All products, block by block, in a piece a thread.

        Args:
            queries: checked, of the gallery's type, shape (n_queries, n_dimensions).
            dropped: gallery row whose product is minus infinity, -1 for none, shape (n_queries,).
            block: queries whose products are held at once; the next block overwrites them.
            threads: pieces that a block is cut into.

        Raises:
            InputError: a query that is not finite, or so long that a score could overflow.
        """
        near = self._tolerance(_lengths(queries, "queries"))
        block = min(block, len(queries))
        held = np.empty((block, len(self.vectors)), dtype=self.vectors.dtype)
        for start in range(0, len(queries), block):
            part = slice(start, min(start + block, len(queries)))
            scores = held[: part.stop - start]
            np.matmul(queries[part], self.vectors.T, out=scores)
            left_out = np.flatnonzero(dropped[part] >= 0)
            # Every other product is finite, so that this one is never near or above anything.
            scores[left_out, dropped[part][left_out]] = -np.inf
            edges = np.linspace(0, len(scores), min(threads, len(scores)) + 1).astype(np.int64).tolist()
            yield [
                (slice(start + first, start + last), scores[first:last], near[start + first : start + last])
                for first, last in itertools.pairwise(edges)
            ]

    def _tolerance(self, lengths: FloatArray) -> FloatArray:
        """The most that a product may differ from the score by definition, for each query."""
        kind = np.finfo(self.vectors.dtype)
        longest = int(lengths.argmax())
        if not lengths[longest] * self._longest < float(kind.max) / 4:
            raise InputError(
                f"queries[{longest}] and the gallery are so long that a score may overflow {kind.dtype}. "
                "Fix: normalise both."
            )
        terms = self.vectors.shape[1]
        # The product's own error, and that of the definition, in double precision.
        relative = sum(terms * u / (1 - terms * u) for u in (float(kind.eps) / 2, 2.0**-53))
        # A little more for the lengths' own rounding, and for terms below the smallest normal number.
        near: FloatArray = relative * lengths * self._longest * (1 + 1e-6) + terms * float(kind.tiny)
        return near


def check_embeddings(embeddings: ArrayLike, name: str) -> Vectors:
    """Embeddings as a C-contiguous array of float32 or float64.

    Args:
        embeddings: shape (n, n_dimensions), float16, float32 or float64.
        name: what they are called in messages.

    Raises:
        InputError: another shape or type.

    Example:
        >>> check_embeddings(np.zeros((1, 2), dtype=np.float16), "queries").dtype
        dtype('float32')
    """
    vectors = as_array(embeddings, name)
    if vectors.dtype == np.float16:
        vectors = vectors.astype(np.float32)
    if vectors.dtype not in (np.float32, np.float64) or vectors.ndim != 2 or 0 in vectors.shape:
        raise InputError(
            f"{name}: embeddings of shape {vectors.shape} and type {vectors.dtype}. "
            "Fix: pass float32 or float64, one a row."
        )
    return np.ascontiguousarray(vectors)


def around(values: Any, near: Any, kind: np.dtype[Any]) -> tuple[Any, Any]:
    """`values` less and plus `near` in another type, rounded outwards.

    Example:
        >>> low, high = around(np.array([1.0]), 0.0, np.dtype(np.float32))
        >>> bool(low[0] < 1.0 < high[0])
        True
    """
    low = np.nextafter((values - near).astype(kind), kind.type(-np.inf))
    return low, np.nextafter((values + near).astype(kind), kind.type(np.inf))


def threads_of_blas() -> int:
    """Threads that BLAS takes, too: the cores of this process, or fewer where the environment says so.

    Example:
        >>> threads_of_blas() >= 1
        True
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or ""
    return max(1, min(cores, int(wanted))) if wanted.isdigit() else cores


def _lengths(vectors: Vectors, name: str) -> FloatArray:
    """Euclidean length of each row; that all are finite is the check that every value is."""
    squares = np.empty(len(vectors), dtype=np.float64)
    rows = max(1, _SQUARED // vectors.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(vectors), rows):
            part = vectors[start : start + rows].astype(np.float64)
            np.einsum("ij,ij->i", part, part, out=squares[start : start + rows])
    lengths: FloatArray = np.sqrt(squares)
    wrong = np.flatnonzero(~np.isfinite(lengths))
    if wrong.size:
        raise InputError(
            f"{name}[{wrong[0]}] holds NaN, infinity or numbers too large to score. "
            "Fix: find where they arose, or normalise."
        )
    return lengths
