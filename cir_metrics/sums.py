"""Numbers as metrics take and give them: arrays, checked, and sums that are the same everywhere.

Every refusal names the place and the value and says how to mend it; nothing is dropped and nothing guessed.

A sum of floats depends on the order of its terms, and BLAS and numpy choose an order by what the processor
can do. `math.fsum` depends on nothing.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cir_metrics.catalogue import check_variant
from cir_metrics.errors import InputError

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

UNLISTED = int(np.iinfo(np.int64).max)
"""Rank of a target that a ranking does not list: beyond every cutoff."""


def exact_sums(values: ArrayLike) -> FloatArray:
    """Sums over the first axis, correctly rounded: the double that is nearest to the true sum.

    Args:
        values: numbers, shape (n, ...).

    Returns:
        Of the shape of one row; zeros where n is 0. Numbers that are not finite, or whose sum overflows, are
        added up by numpy.

    Example:
        >>> exact_sums([[0.1, 1e16], [0.2, 1.0], [0.3, -1e16]])
        array([0.6, 1. ])
    """
    return _of_columns(_sum, values)


def exact_means(values: ArrayLike) -> FloatArray:
    """Means over the first axis, correctly rounded, so that the mean of equal numbers is that number.

    Args:
        values: numbers, shape (n, ...), n at least 1.

    Example:
        >>> exact_means([[0.1, 1.0], [0.1, 0.0], [0.1, 1.0]])
        array([0.1       , 0.66666667])
    """
    array = np.asarray(values, dtype=np.float64)
    if len(array) > 2:
        return _of_columns(_mean, array)
    # One addition rounds once, and half of a number is exact: many columns at once.
    means: FloatArray = np.asarray(array.sum(axis=0) / len(array) + 0.0)
    return means


def exact_mean(values: ArrayLike) -> float:
    """Mean of numbers in one dimension, at least one: see `exact_means`.

    Example:
        >>> exact_mean([0.1, 0.2, 0.3]), (0.1 + 0.2 + 0.3) / 3
        (0.2, 0.20000000000000004)
    """
    return float(exact_means(values))


def _of_columns(function: Callable[[list[float]], float], values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    columns = array.reshape(len(array), math.prod(array.shape[1:])).T.tolist()
    return np.array([function(column) for column in columns], dtype=np.float64).reshape(array.shape[1:])


def _sum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return float(np.sum(values))


def _mean(values: list[float]) -> float:
    """The mean, rounded once: what rounding has left of a sum is summed in turn, until nothing is left."""
    parts = [_sum(values)]
    if not math.isfinite(parts[0]):
        return parts[0] / len(values)
    while left := math.fsum([*values, *(-part for part in parts)]):
        parts.append(left)
    return parts[0] / len(values) if len(parts) == 1 else float(sum(map(Fraction, parts)) / len(values))


def as_array(value: object, name: str) -> NDArray[Any]:
    """`value` as a NumPy array.

    Raises:
        InputError: its rows differ in length.

    Example:
        >>> as_array([[1, 2], [3, 4]], "ranks").shape
        (2, 2)
    """
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InputError(
            f"{name} is not a rectangular array: its rows differ in length. Fix: pad the short ones."
        ) from error


def check_array(
    value: object,
    name: str,
    kinds: str,
    fix: str,
    *,
    dimensions: Sequence[int] = (1,),
    rows: int | None = None,
) -> NDArray[Any]:
    """`value` as an array of a type and shape that a function takes, with at least one row.

    Args:
        value: what was given.
        name: how messages name it.
        kinds: letters of the types that it may have (`numpy.dtype.kind`); `iu` are whole numbers, as int64.
        fix: what to pass in place of another array.
        dimensions: how many it may have.
        rows: how many it must have; None for any number.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_array([1, 2], "num_turns", "iu", "pass 2 integers", rows=2)
        array([1, 2])
    """
    array = as_array(value, name)
    fits = array.ndim in dimensions and array.dtype.kind in kinds and rows in (None, len(array))
    # A mask may have rows without a place: its lists hold nothing.
    if not fits or not (len(array) if kinds == "b" else array.size):
        raise InputError(f"{name}: an array of shape {array.shape} and type {array.dtype}. Fix: {fix}.")
    return array.astype(np.int64) if kinds == "iu" else array


def check_cutoffs(ks: object) -> tuple[int, ...]:
    """`ks` as a tuple of ints without repeats, in the order given.

    Raises:
        InputError: `ks` is not a tuple or list, is empty, or holds something else than ints of 1 or more.

    Example:
        >>> check_cutoffs([5, 10])
        (5, 10)
    """
    if isinstance(ks, (str, bytes, Mapping)) or not isinstance(ks, Sequence):
        raise InputError(
            f"ks={ks!r}; give a tuple or list of cutoffs. Fix: pass ks=(5, 10), or ks=(5,) for one."
        )
    if not ks:
        raise InputError(f"ks={ks!r} is empty. Fix: name at least one cutoff, such as ks=(5,).")
    return tuple(dict.fromkeys(check_cutoff(k) for k in ks))


def check_cutoff(k: object) -> int:
    """`k` as an int.

    Raises:
        InputError: `k` is not an int, or below 1.

    Example:
        >>> check_cutoff(5)
        5
    """
    return check_count(k, "k", 1, "a cutoff is a whole number, 1 or more. Fix: pass k=10, say.")


def check_count(value: object, name: str, least: int, said: str, error: type[InputError] = InputError) -> int:
    """A whole number from `least` on as an int.

    Args:
        value: what was given.
        name: of the argument.
        least: 0 or 1.
        said: what it is and how to mend it, as messages say it.
        error: what is raised.

    Raises:
        InputError: it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise error(f"{name}={value!r}; {said}")
    return int(value)


_MASKS = "pass booleans of shape (n_queries, depth)"


def check_ranks(ranks: ArrayLike, k: int) -> tuple[IntArray, int]:
    """What a metric of one rank a query is computed from: shape (n_queries,), 1-based.

    Raises:
        InputError: `ranks` is empty, not one-dimensional, not whole numbers, or holds one below 1; k < 1.
    """
    return _from_one(_ranks(ranks)), check_cutoff(k)


def check_listed_ranks(ranks: ArrayLike) -> tuple[IntArray]:
    """Ranks that all are numbers of places: as `check_ranks`, none of them `UNLISTED`.

    Raises:
        InputError: as `check_ranks`; a rank that is `UNLISTED`.
    """
    array = _from_one(_ranks(ranks))
    unlisted = np.flatnonzero(array == UNLISTED)
    if unlisted.size:
        raise InputError(
            f"ranks[{int(unlisted[0])}] is UNLISTED. "
            "Fix: give unlisted targets a rank by cir_metrics.evaluation.censor."
        )
    return (array,)


def check_positives(positive: ArrayLike, n_positives: ArrayLike, k: int) -> tuple[BoolArray, IntArray, int]:
    """What a metric of several positives is computed from: a mask, and how many positives each query has.

    Raises:
        InputError: a mask that is not boolean of shape (n_queries, depth), no queries, a query without
            positives or with more marked than it has; k < 1.
    """
    mask = check_array(positive, "positive", "b", _MASKS, dimensions=(2,))
    counts = check_array(n_positives, "n_positives", "iu", f"pass {len(mask)} integers", rows=len(mask))
    marked = mask.sum(axis=1)
    for query in np.flatnonzero((counts < 1) | (marked > counts)):
        raise InputError(
            f"n_positives[{query}] is {counts[query]}, {marked[query]} are marked. Fix: count all, 1 or more."
        )
    return mask, counts, check_cutoff(k)


def check_negatives(
    positive: ArrayLike, negative: ArrayLike, n_positives: ArrayLike, k: int, variant: str = "equation"
) -> tuple[BoolArray, BoolArray, IntArray, int, str]:
    """What PNR-mAP is computed from: as `check_positives`, and a mask of the hard negatives.

    Raises:
        InputError: as `check_positives`; masks of different shapes, a place that holds both, an unknown
            variant.
    """
    mask, counts, k = check_positives(positive, n_positives, k)
    negatives = check_array(negative, "negative", "b", _MASKS, dimensions=(2,))
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
    return mask, negatives, counts, k, check_variant("pnr_map", variant)


def check_sessions(ranks: ArrayLike, num_turns: ArrayLike, k: int) -> tuple[IntArray, IntArray, int]:
    """What a metric of sessions is computed from: ranks up to the longest session's last turn, and turns.

    Raises:
        InputError: ranks that are not whole numbers of 1 or more of shape (n_sessions, max_turns), no
            sessions, a number of turns outside 1..max_turns; k < 1.
    """
    table = _ranks(ranks, dimensions=2)
    turns = check_array(num_turns, "num_turns", "iu", f"pass {len(table)} integers", rows=len(table))
    outside = np.flatnonzero((turns < 1) | (turns > table.shape[1]))
    if outside.size:
        session = int(outside[0])
        raise InputError(
            f"num_turns[{session}] is {turns[session]}, ranks hold {table.shape[1]} turns. "
            f"Fix: use 1 to {table.shape[1]}."
        )
    longest = int(turns.max())
    table = table[:, :longest]
    return _from_one(table, np.arange(longest) < turns[:, None]), turns, check_cutoff(k)


def _ranks(ranks: ArrayLike, *, dimensions: int = 1) -> IntArray:
    shape = "(n_queries,)" if dimensions == 1 else "(n_sessions, max_turns)"
    fix = f"pass whole numbers of shape {shape}, with at least one query"
    return check_array(ranks, "ranks", "iu", fix, dimensions=(dimensions,))


def _from_one(ranks: IntArray, read: BoolArray | bool = True) -> IntArray:
    below = np.argwhere((ranks < 1) & read)
    if len(below):
        position = tuple(int(each) for each in below[0])
        where = ", ".join(map(str, position))
        raise InputError(
            f"ranks[{where}] is {ranks[position]}; ranks count from 1. Fix: add 1 to 0-based ranks."
        )
    return ranks


def final_ranks(ranks: IntArray, num_turns: IntArray) -> IntArray:
    """Each session's rank at its own last turn.

    Args:
        ranks: rank at each turn, shape (n_sessions, max_turns).
        num_turns: turns of each session, shape (n_sessions,).

    Example:
        >>> final_ranks(np.array([[12, 3, 40], [5, 0, 0]]), np.array([3, 1]))
        array([40,  5])
    """
    last: IntArray = np.take_along_axis(ranks, num_turns[:, None] - 1, axis=1)[:, 0]
    return last
