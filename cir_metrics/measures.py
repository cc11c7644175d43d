"""The metrics, one function each: definition, equation, source, and what other libraries call the same thing.

A metric is written once, as one value per query, on rankings that `cir_metrics.evaluation` has coded already:
ranks or masks, never scores, so that there is one tie rule in the code base (`cir_metrics.ranking`).
Each function has two ways in:

- `recall_at_k.per_query(ranks, k)` is the function as it stands here: one value per query, of arrays that are
  trusted. Boards, `cir score` and the evaluate modules run it, through `cir_metrics.evaluation`; their mean
  and median rank take the second way.
- `recall_at_k(ranks, k)` checks its arrays first and takes the mean of those values over the queries.

All give fractions in [0, 1] (mean and median rank: ranks); only tables multiply by 100.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast, get_type_hints

import numpy as np

from cir_metrics.catalogue import check_variant
from cir_metrics.sums import (
    BoolArray,
    FloatArray,
    IntArray,
    check_listed_ranks,
    check_negatives,
    check_positives,
    check_ranks,
    check_sessions,
    exact_mean,
    exact_means,
    exact_sums,
    final_ranks,
)

_P = ParamSpec("_P")
_R_co = TypeVar("_R_co", covariant=True)


class _Metric(Protocol[_P, _R_co]):
    """A metric: called, it checks its arrays and gives the value over all queries."""

    per_query: Callable[..., FloatArray]

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...


def _metric(
    check: Callable[_P, tuple[Any, ...]], over_queries: Callable[[FloatArray], _R_co]
) -> Callable[[Callable[..., FloatArray]], _Metric[_P, _R_co]]:
    """Make the public function of a metric from its values per query, which stay there as `per_query`."""

    def decorate(per_query: Callable[..., FloatArray]) -> _Metric[_P, _R_co]:
        @functools.wraps(per_query)
        def metric(*args: _P.args, **kwargs: _P.kwargs) -> _R_co:
            try:
                checked = check(*args, **kwargs)
            except TypeError:
                try:
                    shown.bind(*args, **kwargs)
                except TypeError as error:
                    raise TypeError(f"{per_query.__name__}(): {error}") from None
                raise
            return over_queries(per_query(*checked))

        returned = inspect.signature(over_queries).return_annotation
        shown = inspect.signature(check).replace(return_annotation=returned)
        metric.__annotations__ = {**get_type_hints(check), "return": get_type_hints(over_queries)["return"]}
        vars(metric).update(per_query=per_query, __signature__=shown)
        # pickle finds a function by this name.
        per_query.__qualname__ = f"{per_query.__name__}.per_query"
        return cast("_Metric[_P, _R_co]", metric)

    return decorate


def _median(values: FloatArray) -> float:
    return float(np.median(values))


@_metric(check_ranks, exact_mean)
def recall_at_k(ranks: IntArray, k: int) -> FloatArray:
    """Share of queries whose single target is among the first k images.

    R@k = (1/Q) * sum_i [rank_i <= k]   (Liu et al., ICCV 2021, Section 5)

    This is trec_eval's *success@k*. trec_eval's own recall divides by the number of relevant images and
    differs once a query has several, as in CIRCO; use `map_at_k` there.

    Args:
        ranks: 1-based rank of each query's target, shape (n_queries,); `UNLISTED` where it is not
            listed.
        k: cutoff, 1 or more.

    Returns:
        A fraction in [0, 1]; `per_query` gives 1.0 or 0.0 for each query.

    Raises:
        InputError: `ranks` is empty, not one-dimensional, not whole numbers, or holds one below 1; k < 1.

    Example:
        >>> recall_at_k([1, 3, 12], k=10)
        0.6666666666666666
        >>> recall_at_k.per_query(np.array([1, 3, 12]), k=10)
        array([1., 1., 0.])
    """
    return (ranks <= k).astype(np.float64)


@_metric(check_ranks, exact_mean)
def recall_subset(ranks: IntArray, k: int) -> FloatArray:
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
    return (ranks <= k).astype(np.float64)


@_metric(check_ranks, exact_mean)
def map_subset(ranks: IntArray, k: int) -> FloatArray:
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
    return (ranks <= k) / ranks


@_metric(check_positives, exact_mean)
def map_at_k(positive: BoolArray, n_positives: IntArray, k: int) -> FloatArray:
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
        A fraction in [0, 1]; `per_query` gives AP@k.

    Raises:
        InputError: a mask that is not boolean of shape (n_queries, depth), no queries, a query without
            positives or with more marked than it has; k < 1.

    Example:
        >>> round(map_at_k([[True, False, True]], [2], k=3), 4)
        0.8333
    """
    rows, ranks, found = _listed(positive[:, :k])
    return _sums(found / ranks, rows, len(positive)) / np.minimum(n_positives, k)


@_metric(check_negatives, exact_mean)
def pnr_map(
    positive: BoolArray, negative: BoolArray, n_positives: IntArray, k: int, variant: str = "equation"
) -> FloatArray:
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
        InputError: as `map_at_k`; masks of different shapes, a place that holds both; an unknown variant, in
            `per_query` too.

    Example:
        >>> positive, negative = [[False, True, False, True]], [[True, False, True, False]]
        >>> pnr_map(positive, negative, [2], k=4)
        0.25
    """
    rows, ranks, found = _listed(positive[:, :k])
    in_front, rank_sums = _in_front(negative[:, :k], rows, ranks)
    if check_variant("pnr_map", variant) == "equation":
        weights = np.where(in_front > 0, rank_sums / np.maximum(in_front, 1) / ranks, 1.0)
    else:
        # The program counts from 0: its index of a place is one less than the rank.
        mean_index = (rank_sums - in_front) / np.maximum(in_front, 1)
        weights = 1.0 + np.where(in_front > 0, mean_index / np.maximum(ranks - 1, 1), 0.0)
        weights[ranks == 1] = 0.0
    return _sums(found / ranks * weights, rows, len(positive)) / np.minimum(n_positives, k)


@_metric(check_sessions, exact_means)
def hits_at_k(ranks: IntArray, num_turns: IntArray, k: int) -> FloatArray:
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
        Fractions that never fall, shape (longest session,); `per_query` has a row of them a session.

    Raises:
        InputError: ranks that are not whole numbers of 1 or more of shape (n_sessions, max_turns), no
            sessions, a number of turns outside 1..max_turns; k < 1.

    Example:
        >>> hits_at_k([[12, 3, 40], [50, 20, 1]], [3, 2], k=10)
        array([0. , 0.5, 0.5])
    """
    taken = np.arange(ranks.shape[1]) < num_turns[:, None]
    return np.maximum.accumulate((ranks <= k) & taken, axis=1).astype(np.float64)


@_metric(check_sessions, exact_mean)
def final_recall(ranks: IntArray, num_turns: IntArray, k: int) -> FloatArray:
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
    return (final_ranks(ranks, num_turns) <= k).astype(np.float64)


@_metric(check_sessions, exact_mean)
def final_mrr(ranks: IntArray, num_turns: IntArray, k: int) -> FloatArray:
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
    final = final_ranks(ranks, num_turns)
    return (final <= k) / final


@_metric(check_sessions, exact_mean)
def hits_auc(ranks: IntArray, num_turns: IntArray, k: int) -> FloatArray:
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
    return area_under_hits(hits_at_k.per_query(ranks, num_turns, k))


@_metric(check_sessions, exact_mean)
def turn_recall(ranks: IntArray, num_turns: IntArray, k: int) -> FloatArray:
    """Mean over sessions of the share of their turns that have that turn's target in the top k.

    Turn Recall@K = (1/Q) * sum_q (1/L_q) * sum over l of [r_ql <= k], where r_ql is the rank of the target
    of turn l: Recall@K (Liu et al., ICCV 2021, Section 5) at each turn.

    Args:
        ranks: rank of each turn's own target, else as for `hits_at_k`.
        num_turns: as for `hits_at_k`.
        k: cutoff, 1 or more.

    Returns:
        A fraction in [0, 1].

    Raises:
        InputError: as `hits_at_k`.

    Example:
        >>> turn_recall([[12, 3, 4], [50, 2, 99]], [3, 2], k=10)
        0.5833333333333333
    """
    taken = np.arange(ranks.shape[1]) < num_turns[:, None]
    shares: FloatArray = ((ranks <= k) & taken).sum(axis=1) / num_turns
    return shares


@_metric(check_listed_ranks, exact_mean)
def mean_rank(ranks: IntArray) -> FloatArray:
    """Mean of the targets' ranks.

    mean rank = (1/Q) * sum_i rank_i   (FISD, Section 4)

    Args:
        ranks: 1-based, shape (n_queries,). A target that its ranking does not list needs a rank too:
            `evaluation.censor` puts it right behind the list and says which ones those are.

    Returns:
        The mean, 1 or more; lower is better.

    Raises:
        InputError: as `recall_at_k`; a rank that is `UNLISTED`.

    Example:
        >>> mean_rank([1, 3, 11])
        5.0
    """
    return ranks.astype(np.float64)


@_metric(check_listed_ranks, _median)
def median_rank(ranks: IntArray) -> FloatArray:
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
    return ranks.astype(np.float64)


def area_under_hits(hits: FloatArray) -> FloatArray:
    """The area of `hits_auc` under each of some curves over turns; with one turn, the value at that turn.

    The trapezoid being linear, the mean of the areas is the area under the mean curve.

    Args:
        hits: shape (n_sessions, max_turns), such as `hits_at_k.per_query` gives; not checked.

    Returns:
        Fractions, shape (n_sessions,).

    Example:
        >>> area_under_hits(np.array([[0.0, 1.0, 1.0]]))
        array([0.75])
    """
    if hits.shape[1] == 1:
        return hits[:, 0]
    area: FloatArray = exact_sums((hits[:, :-1] + hits[:, 1:]).T) / (2 * (hits.shape[1] - 1))
    return area


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
