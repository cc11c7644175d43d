"""Bootstrap over queries or sessions: how far a mean would move had other queries been drawn.

A draw takes n of the n queries with replacement, and a metric's value in that draw is its mean over them
(Efron and Tibshirani, An Introduction to the Bootstrap, chapters 6 and 13). Whole queries are drawn, never
turns: the turns of one session depend on each other. All columns of an array are computed from the same
draws, and so are all arrays of the same length, seed and key: differences between methods are paired so.

A draw names queries by their place. Another order of the queries gives other draws, and an interval that
differs within the error of sampling; the same order gives the same interval to the last digit, on every
machine (`ExactColumns`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cir_metrics.errors import InputError, SettingError
from cir_metrics.sums import FloatArray, check_array, check_count

DRAWS = 10_000
"""Draws where the caller names no number."""
SEED = 2026
"""Seed where the caller names none."""
LEVEL = 0.95
"""Share of the draws that an interval holds."""
ALPHA = 0.05
"""Level of significance where the caller names none."""

_CELLS = 2**21
"""Counts that are held at a time, 16 MB: in small products, threads mostly wait for each other."""


class ExactColumns:
    """Columns of numbers, many weighted sums of which are asked for.

    When many weighted sums of the same numbers are asked for, `math.fsum` would take too long. There a column
    of n values, of which none is larger than 2^e, is split:

    s = 2^(e + b + 1) with 2^b >= n;  q_i = (v_i + s) - s;  r_i = v_i - q_i

    Every q_i is v_i rounded to a multiple of u = 2^-53 * s, and r_i, what is left, is exact. A sum of c_i *
    q_i with whole numbers c_i >= 0 that add up to n at most is a multiple of u, too, and at most n * 2^e <= s
    / 2 = 2^52 * u. Doubles hold all of those, so that nothing is ever rounded, whatever is added first. What
    is left is split again until it is zero: two parts do for fractions. (The split is Rump's, Ogita's and
    Oishi's: Accurate floating-point summation, part I, SIAM Journal on Scientific Computing 2008.)

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


def generator(seed: int, key: str = "") -> np.random.PCG64:
    """The stream of random bits of a seed; each key has a stream of its own.

    Args:
        seed: 0 or more.
        key: what is drawn from, such as a benchmark's id: two benchmarks of the same size do not share draws.

    Returns:
        numpy's PCG64, seeded by `seed` and the first 8 bytes of the key's sha256.

    Raises:
        SettingError: the seed is not a whole number, or below 0.

    Example:
        >>> generator(1, "cirr/val").random_raw() == generator(1, "cirr/val").random_raw()
        True
    """
    check_count(seed, "seed", 0, "a seed is a whole number from 0 on. Fix: pass another.", SettingError)
    named = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
    return np.random.PCG64(np.random.SeedSequence([seed, named]))


def bootstrap_means(values: ArrayLike, *, draws: int = DRAWS, seed: int = SEED, key: str = "") -> FloatArray:
    """Means of many metrics over bootstrap draws of the queries.

    mean*_b = (1/n) * sum_i c_bi * v_i, where c_bi says how often draw b holds query i and sum_i c_bi = n

    Args:
        values: one value per query and metric, shape (n, metrics) or (n,).
        draws: number of draws, 1 or more.
        seed: 0 or more.
        key: see `generator`.

    Returns:
        Shape (draws, metrics), or (draws,) where `values` has one dimension.

    Raises:
        InputError: values of another shape, no queries, a value that is not finite, draws < 1, seed < 0.

    Example:
        >>> bootstrap_means([1.0, 1.0, 1.0], draws=2)
        array([1., 1.])
    """
    matrix = check_values(values, "values")
    means = np.empty((check_draws(draws), matrix.shape[1]))
    columns = ExactColumns(matrix)
    for start, counts in _counts(len(matrix), draws, seed, key):
        means[start : start + len(counts)] = columns.sums(counts)
    means /= len(matrix)
    return means.reshape(draws, *np.shape(values)[1:])


def bootstrap_medians(
    values: ArrayLike, *, draws: int = DRAWS, seed: int = SEED, key: str = ""
) -> FloatArray:
    """Medians over the same draws as `bootstrap_means`; of an even number, the mean of the middle two.

    Args:
        values: one value per query, shape (n,).
        draws: number of draws, 1 or more.
        seed: 0 or more.
        key: see `generator`.

    Returns:
        Shape (draws,).

    Raises:
        InputError: as `bootstrap_means`.

    Example:
        >>> bootstrap_medians([3, 3, 3], draws=2)
        array([3., 3.])
    """
    check_array(values, "values", "fiub", "pass one value per query, shape (n,)")
    matrix = check_values(values, "values")
    n = len(matrix)
    # Ranks are few: a draw is known by how often it holds each of them, in order.
    rising, codes = np.unique(matrix[:, 0], return_inverse=True)
    medians = np.empty(check_draws(draws))
    for start, counts in _counts(n, draws, seed, key, codes):
        reached = np.cumsum(counts, axis=1)
        lower = np.argmax(reached >= (n + 1) // 2, axis=1)
        upper = np.argmax(reached >= n // 2 + 1, axis=1)
        medians[start : start + len(counts)] = (rising[lower] + rising[upper]) / 2
    return medians


def bootstrapped_means(
    benchmarks: Sequence[str],
    columns: Sequence[FloatArray],
    weights: FloatArray,
    *,
    draws: int = DRAWS,
    seed: int = SEED,
) -> FloatArray:
    """Weighted means over bootstrap draws; queries of each benchmark are drawn apart, its id is their key.

    Args:
        benchmarks: ids of the parts.
        columns: values per query, an array a part, of shape (n, columns).
        weights: shares of the parts, shape (parts, columns).
        draws: number of draws.
        seed: 0 or more.

    Returns:
        Shape (draws, columns).

    Raises:
        InputError: draws or seed are out of range.
    """
    total = np.zeros((check_draws(draws), weights.shape[1]))
    for benchmark, values, share in zip(benchmarks, columns, weights, strict=True):
        total += share * bootstrap_means(values, draws=draws, seed=seed, key=benchmark)
    return total


def share_factors(shares: Sequence[float], sizes: Sequence[int]) -> list[float]:
    """What the values of each part are times, so that the mean of all is the weighted mean: w_j * N / n_j.

    Args:
        shares: w_j, the weight of each part in the number.
        sizes: n_j, its queries or sessions; N are those of all parts.
    """
    return [share * sum(sizes) / size for share, size in zip(shares, sizes, strict=True)]


def percentile_interval(draws: ArrayLike, level: float = LEVEL) -> tuple[FloatArray, FloatArray]:
    """The percentile interval of bootstrap draws.

    low, high = quantiles (1 - level) / 2 and (1 + level) / 2 of the draws (Efron and Tibshirani, section
    13.3), interpolated linearly.

    Args:
        draws: shape (draws, ...).
        level: share of the draws between the two, above 0 and below 1.

    Returns:
        Low and high ends, of the shape of one draw.

    Raises:
        InputError: a level outside (0, 1), no draws.

    Example:
        >>> low, high = percentile_interval(np.arange(101.0), level=0.5)
        >>> float(low), float(high)
        (25.0, 75.0)
    """
    check_share(level, "level", "a level", LEVEL)
    table = check_array(draws, "draws", "fiub", "pass one draw or more", dimensions=range(1, 4))
    low, high = np.quantile(table, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.asarray(low), np.asarray(high)


def check_values(values: ArrayLike, name: str) -> FloatArray:
    """Finite numbers of shape (n, columns), one column where one dimension was given.

    Raises:
        InputError: they are not; the message names the place.
    """
    fix = "pass numbers of shape (n,) or (n, metrics), with at least one query"
    array = check_array(values, name, "fiub", fix, dimensions=(1, 2))
    matrix: FloatArray = array.reshape(len(array), -1).astype(np.float64)
    wrong = np.argwhere(~np.isfinite(matrix))
    if len(wrong):
        row, column = (int(each) for each in wrong[0])
        raise InputError(f"{name}[{row}, {column}] is {matrix[row, column]}. Fix: find where it arose.")
    return matrix


def check_draws(draws: int) -> int:
    """The number of draws.

    Raises:
        SettingError: it is not a whole number, or below 1.
    """
    said = f"draws are counted, a whole number from 1 on. Fix: use {DRAWS}."
    return check_count(draws, "draws", 1, said, SettingError)


def check_share(value: object, name: str, what: str, default: float) -> None:
    """Refuse a level that is not a share.

    Raises:
        SettingError: it is not a number, or not above 0 and below 1.
    """
    if not (isinstance(value, int | float | np.floating) and 0 < value < 1):
        raise SettingError(f"{name}={value!r}; {what} is above 0 and below 1. Fix: use {default}.")


def _counts(
    n: int, draws: int, seed: int, key: str, codes: NDArray[np.intp] | None = None
) -> Iterator[tuple[int, FloatArray]]:
    """How often each draw holds each query: first draw of a block, and the block, shape (draws, n).

    The random numbers are taken one after the other whatever the size of a block, so that draw b is the same
    draw in every block.

    Args:
        n: queries.
        draws: draws.
        seed: 0 or more.
        key: see `generator`.
        codes: a number from 0 for each query, shape (n,); then these are counted, shape (draws, codes).
    """
    random = np.random.Generator(generator(seed, key))
    size = max(1, min(draws, _CELLS // n))
    block = np.empty((size, n if codes is None else int(codes.max()) + 1))
    for start in range(0, draws, size):
        counts = block[: min(size, draws - start)]
        places = random.integers(0, n, size=(len(counts), n), dtype=np.uint32)
        for row, drawn in zip(counts, places, strict=True):
            row[:] = np.bincount(drawn if codes is None else codes[drawn], minlength=len(row))
        yield start, counts
