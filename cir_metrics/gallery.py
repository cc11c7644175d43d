"""Ranks and rankings straight from embeddings: query times gallery, never held whole.

A matrix product alone cannot say who ties. BLAS adds the terms of a score in an order that depends on where
in the matrix the score stands and on how many rows there are, so that two copies of one image, or the same
pair in another block, may differ in the last bit. Here a score is therefore defined by its two vectors alone:

score(q, g) = sum over i of q_i * g_i, in double precision, in numpy's pairwise order

A block of products is used to decide what it can decide. A product of n dimensions errs by
n * u / (1 - n * u) * |q| * |g| at most, u half the machine epsilon, in whichever order BLAS adds the terms
(Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., equation 3.5). Only images whose product
lies within that bound of what they are compared with are scored by the definition, some dozens a query. Hence
ranks and rankings that are the same whatever the block, the number of threads, the BLAS, and the order of
queries and gallery; and two copies of an image always tie.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cir_metrics.errors import InputError
from cir_metrics.ids import check_ids
from cir_metrics.ranking import RowsT, check_excluded, check_targets
from cir_metrics.sums import FloatArray, IntArray, as_array, check_count, check_cutoff
from cir_metrics.ties import Ties, check_query_ids

Vectors = NDArray[Any]

BLOCK = 256
"""Queries whose scores are held at once by default."""

_PAIRS = 64
"""Pairs that are scored by the definition at once: their terms fit in a core's cache."""
_GROUP = 16
"""Products whose best stands for all while the k best are bounded."""
_ROOMY = 4
"""Groups for each of the k best, at least."""
_COMPARED = 2**20
"""Comparisons that are held at once by a thread, a byte each."""
_SMALL = 2**22
"""Products for which no threads are started."""


@dataclass(frozen=True)
class Found:
    """What one pass over a gallery found.

    Args:
        rankings: the k best images of each query, best first, ties ordered by `ties.tie_keys`; None where
            no k was given.
        ranks: rank of each target, in the form of `targets`; None where none were given, or `best_only`.
        best_ranks: rank of the best target of each query, shape (n_queries,); None where none were given.
    """

    rankings: list[list[str]] | None = None
    ranks: IntArray | list[IntArray] | None = None
    best_ranks: IntArray | None = None


class Gallery:
    """A gallery of embeddings, checked once and searched many times.

    Args:
        embeddings: shape (n_gallery, n_dimensions), float32 or float64 (float16 is read as float32); finite.
            A C-contiguous array is not copied, so that a memory map stays one.
        ids: id of each row, distinct; needed for rankings.

    Raises:
        InputError: wrong shape or type, a value that is not finite, an id given twice or missing.

    Example:
        >>> gallery = Gallery([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], ids=["a", "c", "b"])
        >>> gallery.target_ranks([[0.1, 0.9]], np.array([1]))
        array([2])
        >>> gallery.top_k([[0.1, 0.9]], k=2, query_ids=["q1"])
        [['c', 'b']]
    """

    def __init__(self, embeddings: ArrayLike, ids: Sequence[str] | None = None) -> None:
        """Check the embeddings and the ids."""
        self._vectors = _check_embeddings(embeddings, "gallery")
        self._longest = float(_lengths(self._vectors, "gallery").max())
        self._ids = None if ids is None else check_ids(ids, "ids", what="gallery")
        if self._ids is not None and len(self._ids) != len(self._vectors):
            raise InputError(
                f"{len(self._ids)} ids but {len(self._vectors)} gallery embeddings. Fix: name each row."
            )
        self._ties = Ties(self._ids or [])

    def __len__(self) -> int:
        """Number of images."""
        return len(self._vectors)

    def target_ranks(
        self, queries: ArrayLike, targets: RowsT, *, excluded: ArrayLike | None = None, block: int = BLOCK
    ) -> RowsT:
        """Rank of each target, ties counted against it: `ranking.target_ranks` of the scores.

        rank = 1 + |{other ranked images whose score >= the target's}|

        Args:
            queries: embeddings, shape (n_queries, n_dimensions), of the gallery's type.
            targets: gallery row of each target, in any form that `ranking.target_ranks` takes.
            excluded: gallery row that is not ranked in each query, shape (n_queries,), -1 for none.
            block: queries whose scores are held at once; memory is block * n_gallery * 4 bytes (8 for
                float64). No rank depends on it.

        Returns:
            int64 ranks from 1 to the number of ranked images, in the form of `targets`.

        Raises:
            InputError: as for `ranking.target_ranks`; queries of another type or number of dimensions, not
                finite, or so long that a score could overflow; block < 1.

        Example:
            >>> Gallery([[0.9], [0.5], [0.5]]).target_ranks([[1.0]], np.array([1]), excluded=[0])
            array([2])
        """
        found = self.search(queries, targets=targets, excluded=excluded, block=block)
        return cast(RowsT, found.ranks)

    def best_target_ranks(
        self,
        queries: ArrayLike,
        targets: IntArray | list[IntArray],
        *,
        excluded: ArrayLike | None = None,
        block: int = BLOCK,
    ) -> IntArray:
        """Rank of the best target of each query: `ranking.best_target_ranks` of the scores.

        Args:
            queries: as for `target_ranks`.
            targets: as for `target_ranks`.
            excluded: as for `target_ranks`.
            block: as for `target_ranks`.

        Returns:
            int64 ranks, shape (n_queries,).

        Raises:
            InputError: as for `target_ranks`.

        Example:
            >>> Gallery([[0.9], [0.9], [0.1]]).best_target_ranks([[1.0]], np.array([[0, 1]]))
            array([1])
        """
        found = self.search(queries, targets=targets, best_only=True, excluded=excluded, block=block)
        return cast(IntArray, found.best_ranks)

    def top_k(
        self,
        queries: ArrayLike,
        k: int,
        *,
        query_ids: Sequence[str] | None = None,
        excluded: ArrayLike | None = None,
        block: int = BLOCK,
    ) -> list[list[str]]:
        """The k best images of each query, best first; ties are ordered by `ties.tie_keys`.

        Args:
            queries: as for `target_ranks`.
            k: images a query, 1 or more; all that are ranked where there are fewer.
            query_ids: id of each query; its ties depend on it. None: the queries' numbers, from 0.
            excluded: as for `target_ranks`.
            block: as for `target_ranks`.

        Returns:
            One list of ids a query, the same whatever the order of the gallery.

        Raises:
            InputError: as for `target_ranks`; k < 1; a gallery without ids.

        Example:
            >>> Gallery([[0.5], [0.9], [0.5]], ids=["b", "c", "a"]).top_k([[1.0]], k=2, query_ids=["q1"])
            [['c', 'a']]
        """
        found = self.search(queries, k, query_ids=query_ids, excluded=excluded, block=block)
        return found.rankings or []

    def search(
        self,
        queries: ArrayLike,
        k: int | None = None,
        *,
        query_ids: Sequence[str] | None = None,
        targets: IntArray | list[IntArray] | None = None,
        best_only: bool = False,
        excluded: ArrayLike | None = None,
        block: int = BLOCK,
    ) -> Found:
        """Rankings and exact ranks of the targets in one pass.

        Args:
            queries: as for `target_ranks`.
            k: images a query; None for no rankings.
            query_ids: as for `top_k`; not looked at without k.
            targets: as for `target_ranks`; None for no ranks.
            best_only: whether the rank of each query's best target is enough; the others are not looked for.
            excluded: as for `target_ranks`.
            block: as for `target_ranks`.

        Raises:
            InputError: as for `target_ranks` and `top_k`.

        Example:
            >>> gallery = Gallery([[0.5], [0.9], [0.1]], ids=["b", "c", "a"])
            >>> gallery.search([[1.0]], k=2, targets=np.array([2]))
            Found(rankings=[['c', 'b']], ranks=array([3]), best_ranks=array([3]))
        """
        vectors = self._check_queries(queries)
        shape = (len(vectors), len(self._vectors))
        wanted = None if targets is None else check_targets(targets, shape)
        dropped = check_excluded(excluded, shape, wanted)
        k = None if k is None else check_cutoff(k)
        block = check_count(block, "block", 1, "it is a number of queries, 1 or more. Fix: leave it out.")
        if k is not None and self._ids is None:
            raise InputError("a ranking names images; this gallery has no ids. Fix: Gallery(..., ids=...).")
        names = [] if k is None else check_query_ids(query_ids, len(vectors))
        near = self._bounds(vectors)
        if wanted is None:
            asked, own = np.empty(0, dtype=np.int64), np.empty(0)
        else:
            asked, own = wanted.owners, self._score(vectors, wanted.owners, wanted.columns)
            best, level = wanted.best(own)
            if best_only:
                asked, own = np.arange(len(vectors)), best

        def answer(start: int, scores: Vectors) -> tuple[list[list[str]], IntArray]:
            part = slice(start, start + len(scores))
            few, bounds = vectors[part], near[part]
            of = slice(*np.searchsorted(asked, (part.start, part.stop)))
            counts = self._count_at_least(few, scores, bounds, asked[of] - start, own[of])
            return [] if k is None else self._rankings(few, scores, bounds, k, names[part]), counts

        threads = 1 if shape[0] * shape[1] < _SMALL else threads_of_blas()
        held = np.empty((min(block, shape[0]), shape[1]), dtype=vectors.dtype)
        rankings: list[list[str]] = []
        found: list[IntArray] = []
        with ThreadPoolExecutor(threads) as pool:
            for start in range(0, len(vectors), block):
                scores = held[: len(vectors) - start]
                np.matmul(vectors[start : start + block], self._vectors.T, out=scores)
                left_out = np.flatnonzero(dropped[start : start + block] >= 0)
                # Every other product is finite, so that this one is never near or above anything.
                scores[left_out, dropped[start + left_out]] = -np.inf
                edges = range(0, len(scores), -(-len(scores) // threads))
                pieces = [scores[edge : edge + edges.step] for edge in edges]
                for lists, counts in pool.map(answer, [start + edge for edge in edges], pieces):
                    rankings += lists
                    found.append(counts)
        if wanted is None:
            return Found(None if k is None else rankings)
        ranks = np.concatenate(found)
        return Found(
            rankings=None if k is None else rankings,
            ranks=None if best_only else wanted.shaped(ranks),
            best_ranks=(ranks if best_only else np.minimum.reduceat(ranks, wanted.starts)) + 1 - level,
        )

    def _check_queries(self, queries: ArrayLike) -> Vectors:
        vectors = _check_embeddings(queries, "queries")
        if vectors.shape[1] != self._vectors.shape[1] or vectors.dtype != self._vectors.dtype:
            raise InputError(
                f"queries have {vectors.shape[1]} dimensions of {vectors.dtype}, the gallery "
                f"{self._vectors.shape[1]} of {self._vectors.dtype}. Fix: embed and store both alike."
            )
        return vectors

    def _bounds(self, queries: Vectors) -> FloatArray:
        """The most that a product may differ from the score by definition, for each query."""
        lengths, kind = _lengths(queries, "queries"), np.finfo(queries.dtype)
        longest = int(lengths.argmax())
        if not lengths[longest] * self._longest < float(kind.max) / 4:
            raise InputError(
                f"queries[{longest}] and the gallery are so long that a score may overflow {kind.dtype}. "
                "Fix: normalise both."
            )
        terms = queries.shape[1]
        # The product's own error, and that of the definition, in double precision.
        relative = sum(terms * u / (1 - terms * u) for u in (float(kind.eps) / 2, 2.0**-53))
        # A little more for the lengths' own rounding, and for terms below the smallest normal number.
        near: FloatArray = relative * lengths * self._longest * (1 + 1e-6) + terms * float(kind.tiny)
        return near

    def _count_at_least(
        self, queries: Vectors, scores: Vectors, near: FloatArray, rows: IntArray, own: FloatArray
    ) -> IntArray:
        """How many images score at least `own` for the query in that row, the image of that score among them.

        The product tells which surely do; the definition tells of those that are near.
        """
        low, high = _around(own, near[rows], scores.dtype)
        counts = np.empty(len(own), dtype=np.int64)
        step = max(1, _COMPARED // scores.shape[1])
        for start in range(0, len(own), step):
            part = slice(start, start + step)
            asked = slice(rows[start], rows[start] + len(rows[part]))
            # One target a query, as nearly all benchmarks have it: their products are not copied.
            rivals = scores[asked if np.array_equal(rows[part], np.r_[asked]) else rows[part]]
            surely = rivals > high[part, None]
            counts[part] = [np.count_nonzero(row) for row in surely]
            unsure = np.flatnonzero((rivals >= low[part, None]) ^ surely)
            places, columns = np.divmod(unsure, scores.shape[1])
            level = self._score(queries, rows[part][places], columns) >= own[part][places]
            counts[part] += np.bincount(places[level], minlength=len(rivals))
        return counts

    def _rankings(
        self, queries: Vectors, scores: Vectors, near: FloatArray, k: int, query_ids: Sequence[str]
    ) -> list[list[str]]:
        """The k best images of each query; no image that is left out, whose product is minus infinity."""
        ids, width = self._ids or [], scores.shape[1] // _GROUP
        k = min(k, scores.shape[1])
        some = scores
        if k <= width // _ROOMY:
            # The best of each group are products of different images, so that the k-th best of them will do:
            # it lies little below the k-th best of all, and takes a fraction of the time to find.
            some = scores[:, : width * _GROUP].reshape(len(scores), _GROUP, width).max(axis=1)
        reached = np.partition(some, some.shape[1] - k, axis=1)[:, some.shape[1] - k]
        # k products are at least that, hence k scores at least that less the bound: an image whose product
        # lies twice the bound below is out.
        low = np.maximum(_around(reached, 2 * near, scores.dtype)[0], np.finfo(scores.dtype).min)
        rankings = []
        for row, (products, least, query_id) in enumerate(zip(scores, low, query_ids, strict=True)):
            columns = np.flatnonzero(products >= least)
            values = self._score(queries, np.full(len(columns), row), columns)
            rankings.append(
                [ids[column] for column in self._ties.best(columns, values, k, query_id).tolist()]
            )
        return rankings

    def _score(self, queries: Vectors, rows: IntArray, columns: IntArray) -> FloatArray:
        """Scores of pairs of a query and an image."""
        values = np.empty(len(rows), dtype=np.float64)
        for start in range(0, len(rows), _PAIRS):
            part = slice(start, start + _PAIRS)
            values[part] = pair_scores(queries[rows[part]], self._vectors[columns[part]])
        return values


def pair_scores(queries: Vectors, images: Vectors) -> FloatArray:
    """The score of each query and the image beside it, by the definition above.

    Args:
        queries: shape (n, dimensions).
        images: shape (n, dimensions).

    Returns:
        float64, shape (n,): each depends on its two vectors and on nothing else.

    Example:
        >>> pair_scores(np.array([[1.0, 2.0]]), np.array([[0.5, 0.25]]))
        array([1.])
    """
    scores: FloatArray = np.add.reduce(np.multiply(queries, images, dtype=np.float64), axis=1)
    return scores


def _check_embeddings(embeddings: ArrayLike, name: str) -> Vectors:
    """Embeddings as a C-contiguous array of float32 or float64."""
    vectors = as_array(embeddings, name)
    if vectors.dtype == np.float16:
        vectors = vectors.astype(np.float32)
    if vectors.dtype not in (np.float32, np.float64) or vectors.ndim != 2 or 0 in vectors.shape:
        raise InputError(
            f"{name}: embeddings of shape {vectors.shape} and type {vectors.dtype}. "
            "Fix: pass float32 or float64, one a row."
        )
    return np.ascontiguousarray(vectors)


def _lengths(vectors: Vectors, name: str) -> FloatArray:
    """Euclidean length of each row; that all are finite is the check that every value is."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(squares))
    if wrong.size:
        raise InputError(
            f"{name}[{wrong[0]}] holds NaN, infinity or numbers too large to score. "
            "Fix: find where they arose, or normalise."
        )
    lengths: FloatArray = np.sqrt(squares)
    return lengths


def _around(values: Any, near: FloatArray, kind: np.dtype[Any]) -> tuple[Any, Any]:
    """`values` less and plus `near` in another type, rounded outwards."""
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
