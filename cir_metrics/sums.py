"""Sums and means that are the same on every machine, to the last digit.

A sum of floats depends on the order of its terms, and BLAS and numpy choose an order by what the processor
can do. Here nothing depends on it. A column of n values, of which none is larger than 2^e, is split:

s = 2^(e + b + 1) with 2^b >= n;  q_i = (v_i + s) - s;  r_i = v_i - q_i

Every q_i is v_i rounded to a multiple of u = 2^-53 * s, and r_i, what is left, is exact. A sum of c_i * q_i
with whole numbers c_i >= 0 that add up to n at most is a multiple of u, too, and at most n * 2^e <= s / 2 =
2^52 * u. Doubles hold all of those, so that nothing is ever rounded, whatever is added first. What is left is
split again until it is zero: two parts do for fractions. (The split is Rump's, Ogita's and Oishi's: Accurate
floating-point summation, part I, SIAM Journal on Scientific Computing 2008.)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


def exact_sums(values: ArrayLike) -> FloatArray:
    """Sums over the first axis, correctly rounded: the double that is nearest to the true sum.

    Args:
        values: numbers, shape (n, ...).

    Returns:
        Of the shape of one row; zeros where n is 0. Numbers that are not finite, or so large that a sum could
        overflow, are added up by numpy.

    Example:
        >>> exact_sums([[0.1, 1e16], [0.2, 1.0], [0.3, -1e16]])
        array([0.6, 1. ])
    """
    array = np.asarray(values, dtype=np.float64)
    totals = _totals(array)
    sums: FloatArray = totals[0] if len(totals) == 1 else np.array([math.fsum(each) for each in totals.T])
    return sums.reshape(array.shape[1:])


def exact_means(values: ArrayLike) -> FloatArray:
    """Means over the first axis, correctly rounded, so that the mean of equal numbers is that number.

    Args:
        values: numbers, shape (n, ...), n at least 1.

    Example:
        >>> exact_means([[0.1, 1.0], [0.1, 0.0], [0.1, 1.0]])
        array([0.1       , 0.66666667])
    """
    array = np.asarray(values, dtype=np.float64)
    totals, n = _totals(array), len(array)
    if len(totals) == 1:
        means: FloatArray = totals[0] / n
    else:
        from fractions import Fraction

        means = np.array([float(sum(map(Fraction, each)) / n) for each in totals.T.tolist()])
    return means.reshape(array.shape[1:])


def exact_mean(values: ArrayLike) -> float:
    """Mean of numbers in one dimension, at least one: see `exact_means`.

    Example:
        >>> exact_mean([0.1, 0.2, 0.3]), (0.1 + 0.2 + 0.3) / 3
        (0.2, 0.20000000000000004)
    """
    return float(exact_means(values))


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
        """Split the columns, and keep what is not zero in one matrix."""
        parts = _parts(matrix)
        self._width = matrix.shape[1]
        self._columns = [np.flatnonzero(part.any(axis=0)) for part in parts]
        self._stacked = np.concatenate(
            [part[:, own] for part, own in zip(parts, self._columns, strict=True)], axis=1
        )

    def sums(self, counts: FloatArray) -> FloatArray:
        """`counts @ matrix`, the same whatever multiplies: no product and no sum of a part is rounded.

        Args:
            counts: whole numbers from 0 on, each row of which adds up to n at most, shape (rows, n).

        Returns:
            Shape (rows, columns). The sums of a column's parts are added smallest first.
        """
        products = counts @ self._stacked
        total = np.zeros((len(counts), self._width))
        stop = products.shape[1]
        for own in reversed(self._columns):
            total[:, own] += products[:, stop - len(own) : stop]
            stop -= len(own)
        return total


def _totals(array: FloatArray) -> FloatArray:
    """The exact sum of each part of each column, shape (parts, columns)."""
    flat = array.reshape(len(array), math.prod(array.shape[1:]))
    return np.stack([part.sum(axis=0) for part in _parts(flat)])


def _parts(matrix: FloatArray) -> list[FloatArray]:
    """What adds up to a matrix, shape (n, columns), largest first: at least one part."""
    parts: list[FloatArray] = []
    left = matrix
    while not parts or left.any():
        largest = np.abs(left).max(axis=0, initial=0.0)
        exponents = np.frexp(largest)[1] + (len(matrix) - 1).bit_length() + 1
        if not np.isfinite(largest).all() or exponents.max(initial=0) > np.finfo(np.float64).maxexp - 1:
            return [*parts, left]
        shift = np.ldexp(1.0, exponents)
        parts.append((left + shift) - shift)
        left = left - parts[-1]
    return parts
