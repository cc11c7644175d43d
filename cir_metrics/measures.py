"""The metrics as plain functions on arrays: definition, source, and what other libraries call the same thing.

They take ranks or masks, never scores, so that there is one tie rule in the code base
(`cir_metrics.ranking`). All return fractions in [0, 1] (mean and median rank: ranks); only tables multiply by
100. One value a query comes from the function of the same measure in `cir_metrics.kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cir_metrics import kernels
from cir_metrics.catalogue import check_variant
from cir_metrics.errors import InputError
from cir_metrics.inputs import as_array, check_cutoff
from cir_metrics.sums import exact_mean, exact_means


def recall_at_k(ranks: ArrayLike, k: int) -> float:
    """Share of queries whose single target is among the first k images.

    R@k = (1/Q) * sum_i [rank_i <= k]   (Liu et al., ICCV 2021, Section 5)

    This is trec_eval's *success@k*. trec_eval's own recall divides by the number of relevant images and
    differs once a query has several, as in CIRCO; use `map_at_k` there.

    Args:
        ranks: 1-based rank of each query's target, shape (n_queries,); `kernels.UNLISTED` where it is not
            listed.
        k: cutoff, 1 or more.

    Returns:
        A fraction in [0, 1].

    Raises:
        InputError: `ranks` is empty, not one-dimensional, not whole numbers, or holds one below 1; k < 1.

    Example:
        >>> recall_at_k([1, 3, 12], k=10)
        0.6666666666666666
    """
    array = _check_ranks(ranks)
    _check_ones(array, np.ones_like(array, dtype=np.bool_))
    return exact_mean(kernels.within(array, check_cutoff(k)))


def recall_subset(ranks: ArrayLike, k: int) -> float:
    """Share of queries whose target is among the first k of the other members of its subset.

    R_subset@k = (1/Q) * sum_i [rank of the target among S_i without the reference <= k]   (Liu et al., ICCV
    2021, Section 5). CIRR's subsets have six members, the reference among them: chance at k=1 is 1/5.

    Args:
        ranks: 1-based rank of the target among the subset's other members, shape (n_queries,).
        k: cutoff, 1 or more; CIRR reports 1, 2 and 3.

    Returns:
        A fraction in [0, 1].

    Raises:
        InputError: as `recall_at_k`.

    Example:
        >>> recall_subset([1, 2, 5, 1], k=1)
        0.5
    """
    return recall_at_k(ranks, k)


def map_subset(ranks: ArrayLike, k: int) -> float:
    """Mean over queries of the average precision at k among the other members of the query's subset.

    mAP_subset@k = (1/Q) * sum_i (1 / rank_i if rank_i <= k else 0), rank_i the target's among S_i without the
    reference (Liu et al., ICCV 2021, supplement B, Table 5). It is `map_at_k` of one target, and trec_eval's
    `recip_rank` where k reaches the whole subset.

    Args:
        ranks: 1-based rank of the target among the subset's other members, shape (n_queries,).
        k: cutoff, 1 or more; CIRR reports 1, 2 and 3.

    Returns:
        A fraction in [0, 1].

    Raises:
        InputError: as `recall_at_k`.

    Example:
        >>> map_subset([1, 2, 5, 1], k=3)
        0.625
    """
    array = _check_ranks(ranks)
    _check_ones(array, np.ones_like(array, dtype=np.bool_))
    return exact_mean(kernels.reciprocal_within(array, check_cutoff(k)))


def map_at_k(positive: ArrayLike, n_positives: ArrayLike, k: int) -> float:
    """Mean over queries of the average precision at k.

    AP@k = (1 / min(|G|, k)) * sum over positives at ranks j <= k of (positives up to j) / j   (CIRCO;
    ZeroSight Eq. 8-10). trec_eval's `map_cut_k` and ranx's `map@k` divide by |G| instead: the
    two agree where k >= |G|.

    Args:
        positive: whether each place of each ranking holds a positive, best first, shape (n_queries, depth);
            what lies behind k is not read, and a ranking that ends before k holds nothing further down.
        n_positives: number of positives |G| of each query, listed or not, shape (n_queries,).
        k: cutoff, 1 or more.

    Returns:
        A fraction in [0, 1].

    Raises:
        InputError: a mask that is not boolean of shape (n_queries, depth), no queries, a query without
            positives or with more marked than it has; k < 1.

    Example:
        >>> round(map_at_k([[True, False, True]], [2], k=3), 4)
        0.8333
    """
    mask, counts = _check_positives(positive, n_positives)
    return exact_mean(kernels.average_precision(mask, counts, check_cutoff(k)))


def pnr_map(
    positive: ArrayLike, negative: ArrayLike, n_positives: ArrayLike, k: int, variant: str = "equation"
) -> float:
    """mAP@k in which hard negatives ranked before a positive take weight from it.

    PNR-AP@k = (1 / min(|G|, k)) * sum over positives at ranks j <= k of w_j * (positives up to j) / j, where
    w_j is 1 if no hard negative stands before rank j, else the mean of N_x / j over the hard negatives before
    it, N_x their ranks (ZeroSight Eq. 11-12).

    Variant `released_code` reproduces the paper's tables, whose program computes something else: w_j = 0 at
    rank 1; 1 at a later rank with no hard negative before it; else 1 + mean of (N_x - 1) / (j - 1). There a
    hard negative in front raises the score, so the two never share a column.

    Args:
        positive: whether each place of each ranking holds a positive, best first, shape (n_queries, depth).
        negative: the same for hard negatives; no place holds both.
        n_positives: number of positives |G| of each query, listed or not, shape (n_queries,).
        k: cutoff, 1 or more.
        variant: `equation` or `released_code`.

    Returns:
        A fraction in [0, 1] for `equation`; `released_code` stays below 2.

    Raises:
        InputError: as `map_at_k`; masks of different shapes, a place that holds both, an unknown variant.

    Example:
        >>> positive, negative = [[False, True, False, True]], [[True, False, True, False]]
        >>> pnr_map(positive, negative, [2], k=4)
        0.25
    """
    mask, counts = _check_positives(positive, n_positives)
    negatives = _check_mask(negative, "negative")
    if negatives.shape != mask.shape:
        raise InputError(
            f"positive has shape {mask.shape}, negative {negatives.shape}. Fix: code both to one depth."
        )
    both = np.argwhere(mask & negatives)
    if len(both):
        query, place = (int(each) for each in both[0])
        raise InputError(
            f"place [{query}, {place}] is positive and hard negative. Fix: an image is one of the two."
        )
    checked: Any = check_variant("pnr_map", variant)
    return exact_mean(kernels.pnr_average_precision(mask, negatives, counts, check_cutoff(k), checked))


def hits_at_k(ranks: ArrayLike, num_turns: ArrayLike, k: int) -> kernels.FloatArray:
    """Share of sessions that had a target in the top k at turn l or before, for each turn l.

    Hits@k(l) = (1/Q) * sum_q max over l' <= l of [r_l' <= k]; a session of fewer than l turns keeps the value
    of its last (CIRCLED Eq. 10-11; FISD's multi-round Hits@k is the same). With several targets a rank is the
    best one's.

    Args:
        ranks: best rank of a target at each turn, shape (n_sessions, max_turns), 1-based; what lies behind a
            session's last turn is not read.
        num_turns: turns of each session, shape (n_sessions,), from 1 to max_turns.
        k: cutoff, 1 or more.

    Returns:
        Fractions that never fall, shape (longest session,).

    Raises:
        InputError: ranks that are not whole numbers of 1 or more of shape (n_sessions, max_turns), no
            sessions, a number of turns outside 1..max_turns; k < 1.

    Example:
        >>> hits_at_k([[12, 3, 40], [50, 20, 1]], [3, 2], k=10)
        array([0. , 0.5, 0.5])
    """
    table, turns = _check_sessions(ranks, num_turns)
    return exact_means(kernels.hits_by_turn(table, turns, check_cutoff(k)))


def final_recall(ranks: ArrayLike, num_turns: ArrayLike, k: int) -> float:
    """Share of sessions that have a target in the top k at their own last turn.

    Final Recall@k = (1/Q) * sum_q [r_(L_q) <= k]   (CIRCLED Eq. 12)

    Args:
        ranks: as for `hits_at_k`.
        num_turns: as for `hits_at_k`.
        k: cutoff, 1 or more.

    Returns:
        A fraction in [0, 1].

    Raises:
        InputError: as `hits_at_k`.

    Example:
        >>> final_recall([[12, 3, 40], [50, 2, 99]], [3, 2], k=10)
        0.5
    """
    table, turns = _check_sessions(ranks, num_turns)
    return exact_mean(kernels.within(kernels.final_ranks(table, turns), check_cutoff(k)))


def final_mrr(ranks: ArrayLike, num_turns: ArrayLike, k: int) -> float:
    """Mean over sessions of the reciprocal rank at k of a target at the session's own last turn.

    Final MRR@k = (1/Q) * sum_q (1 / r_(L_q) if r_(L_q) <= k else 0)   (Yuan and Lam, SIGIR 2021, whose k is
    the gallery's size). The cut at k takes less than 1/k from a session's value.

    Args:
        ranks: as for `hits_at_k`.
        num_turns: as for `hits_at_k`.
        k: cutoff, 1 or more.

    Returns:
        A fraction in [0, 1].

    Raises:
        InputError: as `hits_at_k`.

    Example:
        >>> final_mrr([[12, 3, 40], [50, 2, 99]], [3, 2], k=10)
        0.25
    """
    table, turns = _check_sessions(ranks, num_turns)
    return exact_mean(kernels.reciprocal_within(kernels.final_ranks(table, turns), check_cutoff(k)))


def hits_auc(ranks: ArrayLike, num_turns: ArrayLike, k: int) -> float:
    """Area under the curve of Hits@k over turns.

    AUC = (1 / (L_max - 1)) * sum over l = 1..L_max-1 of (Hits@k(l) + Hits@k(l+1)) / 2 (CIRCLED Eq. 13). With
    L_max = 1 the equation has no value; here it is Hits@k(1). CIRCLED's own code prints a plain mean over
    turns.

    Args:
        ranks: as for `hits_at_k`.
        num_turns: as for `hits_at_k`; L_max is the largest.
        k: cutoff, 1 or more.

    Returns:
        A fraction in [0, 1].

    Raises:
        InputError: as `hits_at_k`.

    Example:
        >>> hits_auc([[12, 3, 40], [50, 20, 99]], [3, 3], k=10)
        0.375
    """
    table, turns = _check_sessions(ranks, num_turns)
    return exact_mean(kernels.area_under_hits(kernels.hits_by_turn(table, turns, check_cutoff(k))))


def mean_rank(ranks: ArrayLike) -> float:
    """Mean of the targets' ranks (FISD, Section 4).

    Args:
        ranks: 1-based, shape (n_queries,). A target that its ranking does not list needs a rank too:
            `kernels.censor` puts it right behind the list and says which ones those are.

    Returns:
        The mean, 1 or more; lower is better.

    Raises:
        InputError: as `recall_at_k`; a rank that is `kernels.UNLISTED`.

    Example:
        >>> mean_rank([1, 3, 11])
        5.0
    """
    return exact_mean(_check_listed(ranks))


def median_rank(ranks: ArrayLike) -> float:
    """Median of the targets' ranks; with an even number of queries, the mean of the middle two.

    Args:
        ranks: as for `mean_rank`.

    Returns:
        The median, 1 or more; lower is better.

    Raises:
        InputError: as `mean_rank`.

    Example:
        >>> median_rank([1, 3, 11])
        3.0
    """
    return float(np.median(_check_listed(ranks)))


def _check_ranks(ranks: ArrayLike, *, dimensions: int = 1) -> kernels.IntArray:
    array = as_array(ranks, "ranks")
    shape = "(n_queries,)" if dimensions == 1 else "(n_sessions, max_turns)"
    if array.ndim != dimensions or array.size == 0:
        raise InputError(f"ranks have shape {array.shape}. Fix: pass shape {shape}, with at least one query.")
    if array.dtype.kind not in "iu":
        raise InputError(f"ranks are {array.dtype}; a rank is a whole number. Fix: pass integers.")
    return array.astype(np.int64)


def _check_ones(ranks: kernels.IntArray, read: NDArray[np.bool_]) -> None:
    below = np.argwhere((ranks < 1) & read)
    if len(below):
        position = tuple(int(each) for each in below[0])
        where = ", ".join(map(str, position))
        raise InputError(
            f"ranks[{where}] is {ranks[position]}; ranks count from 1. Fix: add 1 to 0-based ranks."
        )


def _check_listed(ranks: ArrayLike) -> kernels.IntArray:
    array = _check_ranks(ranks)
    _check_ones(array, np.ones_like(array, dtype=np.bool_))
    unlisted = np.flatnonzero(array == kernels.UNLISTED)
    if unlisted.size:
        raise InputError(
            f"ranks[{int(unlisted[0])}] is UNLISTED. Fix: give unlisted targets a rank by kernels.censor."
        )
    return array


def _check_mask(mask: ArrayLike, name: str) -> kernels.BoolArray:
    array = as_array(mask, name)
    if array.ndim != 2 or array.shape[0] == 0 or array.dtype.kind != "b":
        raise InputError(
            f"{name} has shape {array.shape} and type {array.dtype}. "
            "Fix: pass booleans of shape (n_queries, depth)."
        )
    return array.astype(np.bool_)


def _check_positives(
    positive: ArrayLike, n_positives: ArrayLike
) -> tuple[kernels.BoolArray, kernels.IntArray]:
    mask = _check_mask(positive, "positive")
    counts = as_array(n_positives, "n_positives")
    if counts.shape != mask.shape[:1] or counts.dtype.kind not in "iu":
        raise InputError(
            f"n_positives has shape {counts.shape} and type {counts.dtype}. Fix: pass {len(mask)} integers."
        )
    marked = mask.sum(axis=1)
    for query in np.flatnonzero((counts < 1) | (marked > counts)):
        raise InputError(
            f"n_positives[{query}] is {counts[query]}, {marked[query]} are marked. Fix: count all, 1 or more."
        )
    return mask, counts.astype(np.int64)


def _check_sessions(ranks: ArrayLike, num_turns: ArrayLike) -> tuple[kernels.IntArray, kernels.IntArray]:
    table = _check_ranks(ranks, dimensions=2)
    turns = as_array(num_turns, "num_turns")
    if turns.shape != table.shape[:1] or turns.dtype.kind not in "iu":
        raise InputError(
            f"num_turns has shape {turns.shape} and type {turns.dtype}. Fix: pass {len(table)} integers."
        )
    outside = np.flatnonzero((turns < 1) | (turns > table.shape[1]))
    if outside.size:
        session = int(outside[0])
        raise InputError(
            f"num_turns[{session}] is {turns[session]}, ranks hold {table.shape[1]} turns. "
            f"Fix: use 1 to {table.shape[1]}."
        )
    longest = int(turns.max())
    table = table[:, :longest]
    _check_ones(table, np.arange(longest) < turns[:, None])
    return table, turns.astype(np.int64)
