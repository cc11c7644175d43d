"""Ranks and rankings straight from embeddings: query times gallery, never held whole.

A matrix product alone cannot say who ties. BLAS adds the terms of a score in an order that depends on where
in the matrix the score stands and on how many rows there are, so that two copies of one image, or the same
pair in another block, may differ in the last bit. Here a score is therefore defined by its two vectors alone:

score(q, g) = sum over i of q_i * g_i, in double precision, in numpy's pairwise order

A block product is used to decide what it can decide: it errs by at most n * u / (1 - n * u) * |q| * |g| (n
dimensions, u half the machine epsilon, in whichever order the terms are added: Higham, Accuracy and Stability
of Numerical Algorithms, 2nd ed., eq. 3.5). Only images whose product lies within that bound of what they are
compared with are scored by the definition, some dozens a query. Hence ranks and rankings that are the same
whatever the block, the number of threads, the BLAS, and the order of queries and gallery; and two copies of
an image always tie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cir_metrics.errors import InputError
from cir_metrics.inputs import as_array, check_cutoff, check_ids
from cir_metrics.ranking import IntArray, check_excluded, pad_targets, shape_as
from cir_metrics.ties import Ties, check_query_ids

Vectors = NDArray[Any]
Floats = NDArray[np.float64]

BLOCK = 256
"""Queries whose scores are held at once, unless told otherwise."""

_PAIRS = 64
"""Pairs that are scored by the definition at once: their terms fit in a core's cache."""
_GROUP = 16
"""Products whose best stands for all while the k best are bounded; two or more: one may be left out."""
_ROOMY = 4
"""Groups for each of the k best, at least."""
_COMPARED = 2**20
"""Comparisons that are held at once, a byte each."""


@dataclass(frozen=True)
class Found:
    """What one pass over a gallery found.

    Args:
        rankings: the k best images of each query, best first, ties ordered by `ties.tie_keys`; None where
            no k was given.
        ranks: rank of each target, in the form of `targets`; None where none were given.
        best_ranks: rank of the best target of each query, shape (n_queries,); None where none were given.
    """

    rankings: list[list[str]] | None = None
    ranks: IntArray | list[IntArray] | None = None
    best_ranks: IntArray | None = None


class Gallery:
    """A gallery of embeddings, checked once and asked many times.

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

    @overload
    def target_ranks(
        self,
        queries: ArrayLike,
        targets: list[IntArray],
        *,
        excluded: ArrayLike | None = None,
        block: int = BLOCK,
    ) -> list[IntArray]: ...
    @overload
    def target_ranks(
        self, queries: ArrayLike, targets: IntArray, *, excluded: ArrayLike | None = None, block: int = BLOCK
    ) -> IntArray: ...
    def target_ranks(
        self,
        queries: ArrayLike,
        targets: IntArray | list[IntArray],
        *,
        excluded: ArrayLike | None = None,
        block: int = BLOCK,
    ) -> IntArray | list[IntArray]:
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
        found = self.search(queries, targets=targets, excluded=excluded, block=block).ranks
        # Targets were given, so there are ranks.
        return found if found is not None else []

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
        best = self.search(queries, targets=targets, excluded=excluded, block=block).best_ranks
        return best if best is not None else np.empty(0, dtype=np.int64)

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
        excluded: ArrayLike | None = None,
        block: int = BLOCK,
    ) -> Found:
        """Rankings and exact ranks of the targets in one pass.

        Args:
            queries: as for `target_ranks`.
            k: images a query; None for no rankings.
            query_ids: as for `top_k`; not looked at without k.
            targets: as for `target_ranks`; None for no ranks.
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
        columns, counts = (None, None) if targets is None else pad_targets(targets, shape)
        dropped = check_excluded(excluded, shape, columns)
        k = None if k is None else check_cutoff(k)
        names = [] if k is None else self._asked(query_ids, len(vectors))
        rankings: list[list[str]] = []
        ranks = np.full((0, 0) if columns is None else columns.shape, -1, dtype=np.int64)
        best = np.empty(len(ranks), dtype=np.int64)
        for part, scores, near in self._blocks(vectors, dropped, block):
            if columns is not None:
                ranks[part], best[part] = self._ranks(vectors[part], scores, near, columns[part])
            if k is not None:
                rankings += self._rankings(vectors[part], scores, near, dropped[part], k, names[part])
        return Found(
            rankings=None if k is None else rankings,
            ranks=None if targets is None or counts is None else shape_as(ranks, targets, counts),
            best_ranks=None if columns is None else best,
        )

    def _check_queries(self, queries: ArrayLike) -> Vectors:
        vectors = _check_embeddings(queries, "queries")
        if vectors.shape[1] != self._vectors.shape[1] or vectors.dtype != self._vectors.dtype:
            raise InputError(
                f"queries have {vectors.shape[1]} dimensions of {vectors.dtype}, the gallery "
                f"{self._vectors.shape[1]} of {self._vectors.dtype}. Fix: embed and store both alike."
            )
        return vectors

    def _asked(self, query_ids: Sequence[str] | None, n_queries: int) -> Sequence[str]:
        """The ids that break the queries' ties."""
        if self._ids is None:
            raise InputError("a ranking names images; this gallery has no ids. Fix: Gallery(..., ids=...).")
        return check_query_ids(query_ids, n_queries)

    def _blocks(
        self, vectors: Vectors, dropped: IntArray, block: int
    ) -> Iterator[tuple[slice, Vectors, Floats]]:
        """Queries, their products with the gallery, and how far each may lie from the score by definition."""
        block = min(_check_block(block), len(vectors))
        near = self._tolerance(_lengths(vectors, "queries"))
        held = np.empty((block, len(self._vectors)), dtype=self._vectors.dtype)
        for start in range(0, len(vectors), block):
            part = slice(start, min(start + block, len(vectors)))
            scores = held[: part.stop - start]
            np.matmul(vectors[part], self._vectors.T, out=scores)
            left_out = np.flatnonzero(dropped[part] >= 0)
            # Every other product is finite, so that this one is never near or above anything.
            scores[left_out, dropped[part][left_out]] = -np.inf
            yield part, scores, near[part]

    def _tolerance(self, lengths: Floats) -> Floats:
        """The most that a product may differ from the score by definition, for each query."""
        kind = np.finfo(self._vectors.dtype)
        longest = int(lengths.argmax())
        if not lengths[longest] * self._longest < float(kind.max) / 4:
            raise InputError(
                f"queries[{longest}] and the gallery are so long that a score may overflow {kind.dtype}. "
                "Fix: normalise both."
            )
        terms = self._vectors.shape[1]
        relative = sum(terms * u / (1 - terms * u) for u in (float(kind.eps) / 2, 2.0**-53))
        # A little more for the lengths' own rounding, and for terms below the smallest normal number.
        near: Floats = relative * lengths * self._longest * (1 + 1e-6) + terms * float(kind.tiny)
        return near

    def _ranks(
        self, queries: Vectors, scores: Vectors, near: Floats, columns: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Rank of each target of a block, -1 where there is none, and of the best of each query."""
        rows, places = np.nonzero(columns >= 0)
        wanted = columns[rows, places]
        own = self._score(queries, rows, wanted)
        low, high = _around(own, near[rows], scores.dtype)
        # Images surely above, and those that only the definition can tell; the target is one of these, which
        # is the 1 of the definition.
        above = np.empty(len(rows), dtype=np.int64)
        step = max(1, _COMPARED // len(self._vectors))
        unsure = np.empty((step, len(self._vectors)), dtype=bool)
        surely = np.empty_like(unsure)
        for start in range(0, len(rows), step):
            size = min(step, len(rows) - start)
            for place in range(size):
                pair = start + place
                row = scores[rows[pair]]
                np.greater_equal(row, low[pair], out=unsure[place])
                np.greater(row, high[pair], out=surely[place])
                above[pair] = np.count_nonzero(surely[place])
            np.not_equal(unsure[:size], surely[:size], out=unsure[:size])
            pairs, rivals = np.divmod(np.flatnonzero(unsure[:size]), len(self._vectors))
            pairs += start
            level = self._score(queries, rows[pairs], rivals) >= own[pairs]
            above += np.bincount(pairs[level], minlength=len(rows))
        ranks = np.full(columns.shape, -1, dtype=np.int64)
        ranks[rows, places] = above
        padded = np.full(columns.shape, -np.inf)
        padded[rows, places] = own
        # Targets that tie with the best were counted against each other.
        ties = np.count_nonzero(padded == padded.max(axis=1, keepdims=True), axis=1) - 1
        best = ranks[np.arange(len(ranks)), padded.argmax(axis=1)] - ties
        return ranks, best

    def _rankings(
        self,
        queries: Vectors,
        scores: Vectors,
        near: Floats,
        dropped: IntArray,
        k: int,
        query_ids: Sequence[str],
    ) -> list[list[str]]:
        ids = self._ids or []
        lengths = np.minimum(k, scores.shape[1] - (dropped >= 0))
        last = _reached(scores, lengths)
        # k products are at least that, hence k scores at least that less the bound: an image whose product
        # lies twice the bound below is out.
        low, _ = _around(last, 2 * near, scores.dtype)
        found = [np.flatnonzero(row >= least) for row, least in zip(scores, low, strict=True)]
        counts = np.array([len(columns) for columns in found])
        rows, columns = np.repeat(np.arange(len(scores)), counts), np.concatenate(found)
        values = scores[rows, columns].astype(np.float64)
        # Products further apart than twice the bound are in the order of their scores; the others are scored.
        order = np.lexsort((-values, rows))
        close = (np.diff(rows[order]) == 0) & (-np.diff(values[order]) <= 2 * near[rows[order[1:]]])
        near_tie = np.zeros(len(order), dtype=bool)
        near_tie[1:] |= close
        near_tie[:-1] |= close
        unsure = order[near_tie]
        values[unsure] = self._score(queries, rows[unsure], columns[unsure])
        order = np.lexsort((-values, rows))
        listed = self._ties.ordered(columns[order], values[order], rows[order], query_ids).tolist()
        starts = np.cumsum(counts) - counts
        return [
            [ids[column] for column in listed[start : start + wanted]]
            for start, wanted in zip(starts.tolist(), lengths.tolist(), strict=True)
        ]

    def _score(self, queries: Vectors, rows: IntArray, columns: IntArray) -> Floats:
        """Scores of pairs by definition: each depends on its two vectors and on nothing else."""
        values = np.empty(len(rows), dtype=np.float64)
        terms = np.empty((min(_PAIRS, len(rows)), self._vectors.shape[1]), dtype=np.float64)
        for start in range(0, len(rows), _PAIRS):
            part = slice(start, start + _PAIRS)
            used = terms[: len(rows[part])]
            used[:] = self._vectors[columns[part]]
            used *= queries[rows[part]]
            np.add.reduce(used, axis=1, out=values[part])
        return values


def _check_embeddings(embeddings: ArrayLike, name: str) -> Vectors:
    vectors = as_array(embeddings, name)
    if vectors.dtype == np.float16:
        vectors = vectors.astype(np.float32)
    if vectors.dtype not in (np.float32, np.float64) or vectors.ndim != 2 or 0 in vectors.shape:
        raise InputError(
            f"{name}: embeddings of shape {vectors.shape} and type {vectors.dtype}. "
            "Fix: pass float32 or float64, one a row."
        )
    return np.ascontiguousarray(vectors)


def _lengths(vectors: Vectors, name: str) -> Floats:
    """Euclidean length of each row; that all are finite is the check that every value is."""
    squares = np.empty(len(vectors), dtype=np.float64)
    rows = max(1, _COMPARED // 8 // vectors.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(vectors), rows):
            part = vectors[start : start + rows].astype(np.float64)
            np.einsum("ij,ij->i", part, part, out=squares[start : start + rows])
    lengths: Floats = np.sqrt(squares)
    wrong = np.flatnonzero(~np.isfinite(lengths))
    if wrong.size:
        raise InputError(
            f"{name}[{wrong[0]}] holds NaN, infinity or numbers too large to score. "
            "Fix: find where they arose, or normalise."
        )
    return lengths


def _around(values: Any, near: Any, kind: np.dtype[Any]) -> tuple[Any, Any]:
    """`values` less and plus `near` in another type, rounded outwards."""
    low = np.nextafter((values - near).astype(kind), kind.type(-np.inf))
    return low, np.nextafter((values + near).astype(kind), kind.type(np.inf))


def _reached(scores: Vectors, lengths: IntArray) -> Floats:
    """A number for each query that at least `length` of its products reach, infinity where length is 0."""
    last = np.full(len(scores), np.inf)
    k, width = int(lengths.max(initial=0)), scores.shape[1] // _GROUP
    if 0 < k <= width // _ROOMY:
        # The best of each group are products of different images, so that the k-th best of them will do: it
        # lies little below the k-th best of all, and takes a fraction of the time to find.
        best = scores[:, : width * _GROUP].reshape(len(scores), _GROUP, width).max(axis=1)
        last[lengths > 0] = np.partition(best, width - k, axis=1)[lengths > 0, width - k]
        return last
    for query in np.flatnonzero(lengths):
        kth = scores.shape[1] - int(lengths[query])
        last[query] = np.partition(scores[query], kth)[kth]
    return last


def _check_block(block: object) -> int:
    if isinstance(block, bool) or not isinstance(block, int | np.integer) or block < 1:
        raise InputError(f"block={block!r}; it is a number of queries, 1 or more. Fix: leave it out.")
    return int(block)
