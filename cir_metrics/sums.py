"""Sums and means that are the same on every machine, to the last digit.

A sum of floats depends on the order of its terms, and BLAS and numpy choose an order by what the processor
can do. `math.fsum` depends on nothing. Many weighted sums of the same numbers would take it too long: there a
column of n values, of which none is larger than 2^e, is split:

s = 2^(e + b + 1) with 2^b >= n;  q_i = (v_i + s) - s;  r_i = v_i - q_i

Every q_i is v_i rounded to a multiple of u = 2^-53 * s, and r_i, what is left, is exact. A sum of c_i * q_i
with whole numbers c_i >= 0 that add up to n at most is a multiple of u, too, and at most n * 2^e <= s / 2 =
2^52 * u. Doubles hold all of those, so that nothing is ever rounded, whatever is added first. What is left is
split again until it is zero: two parts do for fractions. (The split is Rump's, Ogita's and Oishi's: Accurate
floating-point summation, part I, SIAM Journal on Scientific Computing 2008.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


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


class ExactColumns:
    """Columns of numbers, many weighted sums of which are asked for.

    Args:
        matrix: finite numbers, shape (n, columns), n at least 1.

    Example:
        >>> columns = ExactColumns(np.array([[0.1], [0.2], [0.3]]))
        >>> columns.sums(np.array([[1.0, 1.0, 1.0], [3.0, 0.0, 0.0]]))
        array([[0.6],
               [0.3]])
    """

    def __init__(self, matrix: FloatArray) -> None:
        """Split the columns into parts that add up to them, largest first."""
        self._width = matrix.shape[1]
        self._parts: list[tuple[NDArray[np.intp], FloatArray]] = []
        left = matrix
        while not self._parts or left.any():
            largest = np.abs(left).max(axis=0, initial=0.0)
            shift = np.ldexp(1.0, np.frexp(largest)[1] + (len(matrix) - 1).bit_length() + 1)
            part = (left + shift) - shift
            columns = np.flatnonzero(part.any(axis=0))
            self._parts.append((columns, part[:, columns]))
            left = left - part

    def sums(self, counts: FloatArray) -> FloatArray:
        """`counts @ matrix`, the same whatever multiplies: no product and no sum of a part is rounded.

        Args:
            counts: whole numbers from 0 on, each row of which adds up to n at most, shape (rows, n).

        Returns:
            Shape (rows, columns). The sums of a column's parts are added smallest first.
        """
        total = np.zeros((len(counts), self._width))
        for columns, part in reversed(self._parts):
            total[:, columns] += counts @ part
        return total
