"""Ranks and rankings straight from embeddings: query times gallery, never held whole.

A matrix product alone cannot say who ties. BLAS adds the terms of a score in an order that depends on where
in the matrix the score stands and on how many rows there are, so that two copies of one image, or the same
pair in another block, may differ in the last bit. Here a score is therefore defined by its two vectors alone:

score(q, g) = sum over i of q_i * g_i, in double precision, in numpy's pairwise order

A block product is used to decide what it can decide (`cir_metrics.products`). Only images whose product lies
within its bound of what they are compared with are scored by the definition, some dozens a query. Hence ranks
and rankings that are the same whatever the block, the number of threads, the BLAS, and the order of queries
and gallery; and two copies of an image always tie.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cir_metrics.coding import IntArray
from cir_metrics.errors import InputError
from cir_metrics.inputs import check_cutoff, check_ids, is_whole
from cir_metrics.products import Products, Vectors, around, check_embeddings, threads_of_blas
from cir_metrics.ranking import check_excluded, pad_targets, shape_as
from cir_metrics.sums import FloatArray
from cir_metrics.ties import Ties, check_query_ids

BLOCK = 256
"""Queries whose scores are held at once by default."""

_PAIRS = 64
"""Pairs that are scored by the definition at once: their terms fit in a core's cache."""
_GROUP = 16
"""Products whose best stands for all while the k best are bounded; two or more: one may be left out."""
_ROOMY = 4
"""Groups for each of the k best, at least."""
_COMPARED = 2**20
"""Comparisons that are held at once by a thread, a byte each."""
_WIDE = 2.0**-28
"""How much nearer than products of float32 two sums in double precision are, the definition one of them."""
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
        self._products = Products(embeddings)
        self._vectors = self._products.vectors
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
        best = self.search(
            queries, targets=targets, best_only=True, excluded=excluded, block=block
        ).best_ranks
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
        columns, counts = (None, None) if targets is None else pad_targets(targets, shape)
        dropped = check_excluded(excluded, shape, columns)
        k = None if k is None else check_cutoff(k)
        block = _check_block(block)
        names = [] if k is None else self._asked(query_ids, len(vectors))
        rankings: list[list[str]] = []
        ranks = np.full((0, 0) if columns is None else columns.shape, -1, dtype=np.int64)
        best = np.empty(len(ranks), dtype=np.int64)

        def answer(part: slice, scores: Vectors, near: FloatArray) -> list[list[str]]:
            wide = vectors[part].astype(np.float64)
            if columns is not None:
                ranks[part], best[part] = self._ranks(wide, scores, near, columns[part], best_only)
            if k is None:
                return []
            return self._rankings(wide, scores, near, dropped[part], k, names[part])

        threads = 1 if shape[0] * shape[1] < _SMALL else threads_of_blas()
        with ThreadPoolExecutor(threads) as pool:
            each = pool.map if threads > 1 else map
            for pieces in self._products.blocks(vectors, dropped, block, threads):
                for lists in each(answer, *zip(*pieces, strict=True)):
                    rankings += lists
        return Found(
            rankings=None if k is None else rankings,
            ranks=None
            if targets is None or counts is None or best_only
            else shape_as(ranks, targets, counts),
            best_ranks=None if columns is None else best,
        )

    def _check_queries(self, queries: ArrayLike) -> Vectors:
        vectors = check_embeddings(queries, "queries")
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

    def _ranks(
        self, queries: FloatArray, scores: Vectors, near: FloatArray, columns: IntArray, best_only: bool
    ) -> tuple[IntArray, IntArray]:
        """Rank of each target of a block, -1 where there is none, and of the best of each query."""
        rows, places = np.nonzero(columns >= 0)
        own = self._score(queries, rows, columns[rows, places])
        padded = np.full(columns.shape, -np.inf)
        padded[rows, places] = own
        top = padded.argmax(axis=1)
        # Targets that tie with the best are counted against each other.
        ties = np.count_nonzero(padded == padded.max(axis=1, keepdims=True), axis=1) - 1
        if best_only:
            rows, places = np.arange(len(columns)), top
            own = padded[rows, places]
        low, high = around(own, near[rows], scores.dtype)
        # Images surely above, and those that only the definition can tell; the target is one of these, which
        # is the 1 of the definition.
        above = np.empty(len(rows), dtype=np.int64)
        width, counts = len(self._vectors), np.bincount(rows, minlength=len(columns))
        step = max(_COMPARED // width, int(counts.max()))
        # Whole words, so that eight comparisons at a time are looked at; the last word may be in part unused.
        held = np.zeros((2, (step * width + 7) // 8 * 8), dtype=bool)
        start = 0
        for first, last in _runs(counts, step):
            # Queries with as many targets each, so that one call compares them all.
            size = (last - first) * int(counts[first])
            part, shape = slice(start, start + size), (last - first, -1, width)
            unsure, surely = held[:, : size * width]
            rivals = scores[first:last, None]
            np.greater_equal(rivals, low[part].reshape(len(rivals), -1, 1), out=unsure.reshape(shape))
            np.greater(rivals, high[part].reshape(len(rivals), -1, 1), out=surely.reshape(shape))
            above[part] = [np.count_nonzero(row) for row in surely.reshape(size, width)]
            pairs, images = np.divmod(_differing(held[0], held[1], size * width), width)
            pairs += start
            level = self._reach(queries, near, rows[pairs], images, own[pairs])
            above[part] += np.bincount(pairs[level] - start, minlength=size)
            start += size
        ranks = np.full(columns.shape, -1, dtype=np.int64)
        ranks[rows, places] = above
        best = ranks[np.arange(len(ranks)), top] - ties
        return ranks, best

    def _rankings(
        self,
        queries: FloatArray,
        scores: Vectors,
        near: FloatArray,
        dropped: IntArray,
        k: int,
        query_ids: Sequence[str],
    ) -> list[list[str]]:
        ids = self._ids or []
        lengths = np.minimum(k, scores.shape[1] - (dropped >= 0))
        last, best = _reached(scores, lengths)
        # k products are at least that, hence k scores at least that less the bound: an image whose product
        # lies twice the bound below is out.
        low, _ = around(last, 2 * near, scores.dtype)
        rows, columns = _at_least(scores, low, best)
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
        starts = np.searchsorted(rows[order], np.arange(len(scores)))
        return [
            [ids[column] for column in listed[start : start + wanted]]
            for start, wanted in zip(starts.tolist(), lengths.tolist(), strict=True)
        ]

    def _reach(
        self, queries: FloatArray, near: FloatArray, rows: IntArray, columns: IntArray, own: FloatArray
    ) -> NDArray[np.bool_]:
        """Whether the score of each pair is at least `own`; pairs of a query stand together."""
        if self._vectors.dtype == np.float64:
            return self._score(queries, rows, columns) >= own
        # In double precision, whatever the order of the terms, nearly all pairs are told apart.
        values = np.empty(len(rows), dtype=np.float64)
        shape = (_PAIRS, self._vectors.shape[1])
        images, wide = np.empty(shape, self._vectors.dtype), np.empty(shape, np.float64)
        edges = np.flatnonzero(np.diff(rows, prepend=-1, append=-1)).tolist()
        for begin, end in itertools.pairwise(edges):
            query = queries[rows[begin]]
            for start in range(begin, end, _PAIRS):
                part = slice(start, min(start + _PAIRS, end))
                n = part.stop - start
                wide[:n] = np.take(self._vectors, columns[part], axis=0, out=images[:n], mode="clip")
                np.vecdot(wide[:n], query, out=values[part])
        close = np.flatnonzero(np.abs(values - own) <= near[rows] * _WIDE)
        values[close] = self._score(queries, rows[close], columns[close])
        return values >= own

    def _score(self, queries: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
        """Scores of pairs by definition: each depends on its two vectors and on nothing else."""
        values = np.empty(len(rows), dtype=np.float64)
        shape = (min(_PAIRS, len(rows)), self._vectors.shape[1])
        # Filled again and again: memory that is allocated anew would take as long as the sums.
        images, terms, query_rows = (
            np.empty(shape, kind) for kind in (self._vectors.dtype, np.float64, np.float64)
        )
        for start in range(0, len(rows), _PAIRS):
            part = slice(start, start + _PAIRS)
            n = len(rows[part])
            terms[:n] = np.take(self._vectors, columns[part], axis=0, out=images[:n], mode="clip")
            terms[:n] *= np.take(queries, rows[part], axis=0, out=query_rows[:n], mode="clip")
            np.add.reduce(terms[:n], axis=1, out=values[part])
        return values


def pair_scores(queries: Vectors, images: Vectors) -> FloatArray:
    """The score of each query and the image beside it, by the definition above.

    Args:
        queries: shape (n, dimensions).
        images: shape (n, dimensions).

    Returns:
        float64, shape (n,).

    Example:
        >>> pair_scores(np.array([[1.0, 2.0]]), np.array([[0.5, 0.25]]))
        array([1.])
    """
    values = np.empty(len(queries), dtype=np.float64)
    for start in range(0, len(queries), _COMPARED // max(1, queries.shape[1])):
        part = slice(start, start + _COMPARED // max(1, queries.shape[1]))
        np.add.reduce(np.multiply(queries[part], images[part], dtype=np.float64), axis=1, out=values[part])
    return values


def _reached(scores: Vectors, lengths: IntArray) -> tuple[FloatArray, Vectors | None]:
    """A number for each query that at least `length` of its products reach, infinity where length is 0.

    Beside it the best product of each group of images, where groups were looked at.
    """
    last = np.full(len(scores), np.inf)
    k, width = int(lengths.max(initial=0)), scores.shape[1] // _GROUP
    if 0 < k <= width // _ROOMY:
        # The best of each group are products of different images, so that the k-th best of them will do: it
        # lies little below the k-th best of all, and takes a fraction of the time to find.
        best = scores[:, : width * _GROUP].reshape(len(scores), _GROUP, width).max(axis=1)
        last[lengths > 0] = np.partition(best, width - k, axis=1)[lengths > 0, width - k]
        return last, best
    for query in np.flatnonzero(lengths):
        kth = scores.shape[1] - int(lengths[query])
        last[query] = np.partition(scores[query], kth)[kth]
    return last, None


def _at_least(scores: Vectors, low: FloatArray, best: Vectors | None) -> tuple[IntArray, IntArray]:
    """Query and image of each product that is at least its query's bound.

    Args:
        scores: products, shape (n_queries, n_gallery).
        low: a bound a query.
        best: the best product of each group, of `_reached`: a group whose best lies below has none.
    """
    if best is None:
        few, found = np.nonzero(scores >= low[:, None])
        return few, found
    width = best.shape[1]
    rows, groups = np.nonzero(best >= low[:, None])
    members = groups[:, None] + width * np.arange(_GROUP)
    reached = scores[rows[:, None], members] >= low[rows, None]
    rest, columns = np.nonzero(scores[:, width * _GROUP :] >= low[:, None])
    return (
        np.concatenate([np.repeat(rows, np.count_nonzero(reached, axis=1)), rest]),
        np.concatenate([members[reached], columns + width * _GROUP]),
    )


def _differing(some: NDArray[np.bool_], others: NDArray[np.bool_], size: int) -> IntArray:
    """Where the first `size` values differ, in ascending order; few do. `some` is overwritten."""
    words = some.view(np.uint64)
    np.bitwise_xor(words, others.view(np.uint64), out=words)
    # Whether a word is zero is faster to ask, and to list, than eight times a byte.
    found = np.flatnonzero(words[: (size + 7) // 8] != 0)
    places, bytes_ = np.nonzero(words[found].view(np.uint8).reshape(-1, 8))
    differing = found[places] * 8 + bytes_
    # Behind the last value of a part-filled word stand comparisons of an earlier call.
    return differing[differing < size]


def _runs(counts: IntArray, most: int) -> Iterator[tuple[int, int]]:
    """Stretches of queries that have equally many targets, `most` together at most."""
    first = 0
    while first < len(counts):
        others = np.flatnonzero(counts[first:] != counts[first])
        alike = int(others[0]) if others.size else len(counts) - first
        last = first + min(alike, most // int(counts[first]))
        yield first, last
        first = last


def _check_block(block: object) -> int:
    if not is_whole(block) or block < 1:
        raise InputError(f"block={block!r}; it is a number of queries, 1 or more. Fix: leave it out.")
    return int(block)
