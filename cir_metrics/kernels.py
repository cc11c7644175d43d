"""Vectorised measures over rankings that are already coded as booleans or ranks.

One value a query (or session) comes back from each; `cir_metrics.measures` takes the means and holds the long
explanations. Conventions: ranks are 1-based; column j-1 of a mask is rank j; a mask may be narrower than K (a
list that ends early holds nothing further down); numpy alone. These functions trust their input: the checks
are made once, in `measures` and `evaluation`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cir_metrics.sums import exact_sums

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
PnrVariant = Literal["equation", "released_code"]

UNLISTED = int(np.iinfo(np.int64).max)
"""Rank of a target that a ranking does not list: beyond every cutoff."""


def encode(rankings: Sequence[Sequence[str]], relevant: Sequence[Collection[str]], depth: int) -> BoolArray:
    """Which of the first `depth` places of each ranking hold a relevant image.

    Args:
        rankings: image ids, best first, one list a query; may be shorter than `depth`.
        relevant: the relevant ids of each query, aligned with `rankings`.
        depth: number of places, 0 or more.

    Returns:
        Shape (n_queries, depth); places that a ranking does not fill are False.

    Example:
        >>> encode([["a", "b"], ["c"]], [{"b"}, {"c"}], depth=2)
        array([[False,  True],
               [ True, False]])
    """
    return encode_groups(rankings, [relevant], depth)[0]


def encode_groups(
    rankings: Sequence[Sequence[str]], groups: Sequence[Sequence[Collection[str]]], depth: int
) -> list[BoolArray]:
    """`encode` for several groups of relevant images at once, in one pass over the rankings.

    Args:
        rankings: image ids, best first, one list a query; may be shorter than `depth`.
        groups: by group the ids of each query, aligned with `rankings`; eight groups at most.
        depth: number of places, 0 or more.

    Returns:
        One mask a group, shape (n_queries, depth).

    Example:
        >>> positive, negative = encode_groups([["a", "b", "c"]], [[["b"]], [["c", "x"]]], depth=3)
        >>> positive.tolist(), negative.tolist()
        ([[False, True, False]], [[False, False, True]])
    """
    lengths = np.fromiter((min(len(ranking), depth) for ranking in rankings), np.int64, len(rankings))
    nothing = itertools.repeat(0)
    # A byte a place and a bit a group, made by C code all the way: a generator over the places would take
    # five times as long.
    flags = b"".join(
        bytes(map(_bits(own).get, ranking[:depth], nothing))
        for ranking, own in zip(rankings, zip(*groups, strict=True), strict=True)
    )
    coded = np.zeros((len(rankings), depth), dtype=np.uint8)
    coded[np.arange(depth) < lengths[:, None]] = np.frombuffer(flags, dtype=np.uint8)
    return [(coded & (1 << bit)) > 0 for bit in range(len(groups))]


def _bits(groups: Sequence[Collection[str]]) -> dict[str, int]:
    """By image id the groups that it belongs to, a bit each."""
    found: dict[str, int] = dict.fromkeys(groups[0], 1)
    for bit, ids in enumerate(groups[1:], start=1):
        own = dict.fromkeys(ids, 1 << bit)
        shared = own.keys() & found.keys()
        for image_id in shared:
            own[image_id] |= found[image_id]
        found.update(own)
    return found


def first_ranks(relevant: BoolArray) -> IntArray:
    """Rank of the first relevant image of each row, `UNLISTED` where there is none.

    Args:
        relevant: shape (n_queries, depth), from `encode`.

    Returns:
        1-based ranks, shape (n_queries,).

    Example:
        >>> first_ranks(np.array([[False, True], [False, False]])) == [2, UNLISTED]
        array([ True,  True])
    """
    if relevant.shape[1] == 0:
        return np.full(relevant.shape[0], UNLISTED, dtype=np.int64)
    ranks = np.argmax(relevant, axis=1).astype(np.int64) + 1
    return np.where(relevant.any(axis=1), ranks, UNLISTED)


def within(ranks: IntArray, k: int) -> FloatArray:
    """1.0 where a rank is at most k, else 0.0 (Recall@K of one query).

    Example:
        >>> within(np.array([1, 7, UNLISTED]), k=5)
        array([1., 0., 0.])
    """
    return (ranks <= k).astype(np.float64)


def reciprocal_within(ranks: IntArray, k: int) -> FloatArray:
    """1 / rank where a rank is at most k, else 0.0 (reciprocal rank at K; AP@K of one query with one target).

    Example:
        >>> reciprocal_within(np.array([1, 4, 7, UNLISTED]), k=5)
        array([1.  , 0.25, 0.  , 0.  ])
    """
    return within(ranks, k) / ranks


def average_precision(positive: BoolArray, n_positives: IntArray, k: int) -> FloatArray:
    """AP@K of each query: precision at each listed positive, summed, over min(n_positives, k).

    Args:
        positive: which places hold a positive, shape (n_queries, depth).
        n_positives: number of positives of each query, listed or not, shape (n_queries,).
        k: cutoff, 1 or more.

    Returns:
        Fractions, shape (n_queries,).

    Example:
        >>> average_precision(np.array([[True, False, True]]), np.array([2]), k=3).round(4)
        array([0.8333])
    """
    rows, ranks, found = _listed(positive[:, :k])
    return _sums(found / ranks, rows, len(positive)) / np.minimum(n_positives, k)


def pnr_average_precision(
    positive: BoolArray,
    negative: BoolArray,
    n_positives: IntArray,
    k: int,
    variant: PnrVariant = "equation",
) -> FloatArray:
    """PNR-AP@K of each query: AP@K whose terms are weighted by the hard negatives ranked before them.

    Args:
        positive: which places hold a positive, shape (n_queries, depth).
        negative: which places hold a hard negative, same shape, disjoint from `positive`.
        n_positives: number of positives of each query, listed or not, shape (n_queries,).
        k: cutoff, 1 or more.
        variant: "equation" (weights at most 1) or "released_code" (0 at rank 1, else from 1 to 2).

    Returns:
        One value a query, shape (n_queries,); a fraction for "equation".

    Example:
        >>> positive, negative = np.array([[False, True]]), np.array([[True, False]])
        >>> pnr_average_precision(positive, negative, np.array([1]), k=2)
        array([0.25])
    """
    rows, ranks, found = _listed(positive[:, :k])
    in_front, rank_sums = _in_front(negative[:, :k], rows, ranks)
    if variant == "equation":
        weights = np.where(in_front > 0, rank_sums / np.maximum(in_front, 1) / ranks, 1.0)
    else:
        # The program counts from 0: its index of a place is one less than the rank.
        mean_index = (rank_sums - in_front) / np.maximum(in_front, 1)
        weights = 1.0 + np.where(in_front > 0, mean_index / np.maximum(ranks - 1, 1), 0.0)
        weights[ranks == 1] = 0.0
    return _sums(found / ranks * weights, rows, len(positive)) / np.minimum(n_positives, k)


def hits_by_turn(ranks: IntArray, num_turns: IntArray, k: int) -> FloatArray:
    """1.0 from the first turn on that has a target within k; a session that has ended keeps its value.

    Args:
        ranks: best rank of a target at each turn, shape (n_sessions, max_turns); what lies behind a session's
            last turn is not read.
        num_turns: turns of each session, shape (n_sessions,).
        k: cutoff, 1 or more.

    Returns:
        Shape (n_sessions, max_turns).

    Example:
        >>> hits_by_turn(np.array([[12, 3, 40], [1, 0, 0]]), np.array([3, 1]), k=10)
        array([[0., 1., 1.],
               [1., 1., 1.]])
    """
    taken = np.arange(ranks.shape[1]) < num_turns[:, None]
    return np.maximum.accumulate((ranks <= k) & taken, axis=1).astype(np.float64)


def final_ranks(ranks: IntArray, num_turns: IntArray) -> IntArray:
    """Each session's rank at its own last turn.

    Example:
        >>> final_ranks(np.array([[12, 3, 40], [5, 0, 0]]), np.array([3, 1]))
        array([40,  5])
    """
    last: IntArray = np.take_along_axis(ranks, num_turns[:, None] - 1, axis=1)[:, 0]
    return last


def area_under_hits(hits: FloatArray) -> FloatArray:
    """Trapezoid over the turns of each session's hits, divided by (max_turns - 1); with one turn, that turn.

    Args:
        hits: shape (n_sessions, max_turns), from `hits_by_turn`.

    Returns:
        Fractions, shape (n_sessions,); their mean is the area under the mean curve, the trapezoid being
        linear.

    Example:
        >>> area_under_hits(np.array([[0.0, 1.0, 1.0]]))
        array([0.75])
    """
    if hits.shape[1] == 1:
        return hits[:, 0]
    area: FloatArray = exact_sums((hits[:, :-1] + hits[:, 1:]).T) / (2 * (hits.shape[1] - 1))
    return area


def censor(ranks: IntArray, list_lengths: IntArray) -> tuple[IntArray, BoolArray]:
    """Ranks with every unlisted target put right behind its list, and which ones those are.

    Args:
        ranks: from `first_ranks`, shape (n_queries,).
        list_lengths: images in each ranking, shape (n_queries,).

    Returns:
        Ranks and a mask of the unlisted, both of shape (n_queries,).

    Example:
        >>> censor(np.array([2, UNLISTED]), np.array([50, 50]))
        (array([ 2, 51]), array([False,  True]))
    """
    unlisted = ranks == UNLISTED
    return np.where(unlisted, list_lengths + 1, ranks), unlisted


def _listed(positive: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Of each listed positive its row, its rank, and the positives up to that rank, row by row.

    Few places hold a positive: measures that add over positives look at those alone.
    """
    rows, columns = np.nonzero(positive)
    counts = np.bincount(rows, minlength=len(positive))
    found = np.arange(1, len(rows) + 1) - (np.cumsum(counts) - counts)[rows]
    return rows, columns + 1, found


def _in_front(negative: BoolArray, rows: IntArray, ranks: IntArray) -> tuple[IntArray, IntArray]:
    """How many hard negatives stand before each of some places, and the sum of their ranks."""
    width = negative.shape[1] + 1
    negative_rows, negative_columns = np.nonzero(negative)
    places = negative_rows * width + negative_columns + 1
    rank_sums = np.concatenate([[0], np.cumsum(negative_columns + 1)])
    first = np.searchsorted(places, rows * width)
    here = np.searchsorted(places, rows * width + ranks)
    return here - first, rank_sums[here] - rank_sums[first]


def _sums(terms: FloatArray, rows: IntArray, n: int) -> FloatArray:
    return np.bincount(rows, weights=terms, minlength=n).astype(np.float64, copy=False)
