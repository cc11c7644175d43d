"""Is a difference between two methods more than chance: paired randomisation test, and Holm's correction.

If two methods are exchangeable, each query's two values could as well have been the other way round, so that
the difference of that query could have had the other sign. The test counts how many of all such changes of
sign make a total difference at least as large as the one that was found (Smucker, Allan and Carterette, CIKM
2007, on tests for information retrieval). Queries are what is exchanged, never turns. The test is two-sided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cir_metrics.errors import InputError
from cir_metrics.resampling import DRAWS, SEED, ExactColumns, check_draws, check_values, generator
from cir_metrics.sums import FloatArray, check_array, exact_sums

_ENUMERATED = 16
"""Differences other than zero up to which all changes of sign are gone through."""
NEAR = 1e-12
"""Numbers that differ by no more than this share count as equal: what is left of a rounding.

A value per query is a sum of at most 1,000 terms, none of them negative, each rounded a few times, and the
sum once a term. Its relative error stays below 1,010 * 2^-53 = 1.2e-13, and two equal values differ by less
than twice that. Values that differ in truth are further apart: two sums of three fractions with
denominators up to 50 by 50^-6 = 6e-11 at least.
"""
_CELLS = 2**20
"""Signs that are held at a time."""
_WORD = 64


@dataclass(frozen=True)
class PValue:
    """Result of a randomisation test.

    Args:
        p: probability of a difference at least as large, where the methods are exchangeable.
        test: `binomial` and `enumerated` are exact; `sampled` is the share among random changes of sign.
        nonzero: queries on which the two methods differ.
    """

    p: float
    test: Literal["binomial", "enumerated", "sampled"]
    nonzero: int

    @property
    def exact(self) -> bool:
        """Whether all changes of sign are accounted for."""
        return self.test != "sampled"


def paired_differences(first: ArrayLike, second: ArrayLike) -> FloatArray:
    """Differences of two methods query by query, exactly 0 where only a rounding sets the values apart.

    d_i = first_i - second_i, and 0 where |d_i| <= 1e-12 * max(|first_i|, |second_i|)

    Equal fractions may be stored apart: 1/28 + 2/42 + 3/48 = 1/30 + 2/40 + 3/48, but not in floats. Ties are
    decided here and nowhere else, so that tests and counts of wins agree.

    Args:
        first: one value per query and metric of the first method, shape (n, columns) or (n,).
        second: those of the second, of the same shape.

    Returns:
        Of the same shape.

    Raises:
        InputError: other shapes, no queries, a value that is not finite.

    Example:
        >>> paired_differences([0.1 + 0.2, 1.0], [0.3, 0.5])
        array([0. , 0.5])
    """
    one, other = check_values(first, "first"), check_values(second, "second")
    if np.shape(first) != np.shape(second):
        raise InputError(
            f"first has shape {np.shape(first)} and second {np.shape(second)}. "
            "Fix: pass the values of the same queries."
        )
    found = one - other
    found[np.abs(found) <= NEAR * np.maximum(np.abs(one), np.abs(other))] = 0.0
    return found.reshape(np.shape(first))


def randomisation_test(
    differences: ArrayLike, *, draws: int = DRAWS, seed: int = SEED, key: str = ""
) -> list[PValue]:
    """Paired two-sided randomisation test of each column of differences.

    p = share of the sign changes s in {-1, 1}^n with |sum_i s_i * d_i| >= |sum_i d_i|

    Exact where it is cheap: if all differences that are not zero have the same size, as those of recall have,
    by the binomial distribution (McNemar's exact test); if there are at most 16 of them, by going through all
    changes of sign. Otherwise `draws` random changes are taken, and the one that was found counts as one of
    them: p = (1 + hits) / (1 + draws), which is never zero (Davison and Hinkley 1997, section 4.2).

    Args:
        differences: value of the first method minus that of the second, from `paired_differences`, shape
            (n, columns) or (n,); where the statistic is a weighted mean, already multiplied by the weights.
            A column without any difference has p = 1.
        draws: random changes of sign, 1 or more; those of a query are the same for all columns, and whatever
            other columns there are.
        seed: 0 or more.
        key: see `cir_metrics.resampling.generator`.

    Returns:
        One result a column.

    Raises:
        InputError: differences of another shape, no queries, a value that is not finite, draws < 1, seed < 0.

    Example:
        >>> randomisation_test([1, 1, 1, 1, 1, 0, 0])
        [PValue(p=0.0625, test='binomial', nonzero=5)]
        >>> randomisation_test([0.5, 0.25, 1.0])[0].p
        0.25
    """
    matrix = check_values(differences, "differences")
    tests = PairedTests(np.column_stack([matrix, np.zeros(len(matrix))]), draws=draws, seed=seed, key=key)
    columns = range(matrix.shape[1])
    return [tests.test(column, len(columns), ahead=columns) for column in columns]


class PairedTests:
    """Randomisation tests of any pairs of many methods, on the same random changes of sign.

    sum_i s_i * (a_i - b_i) = sum_i s_i * a_i - sum_i s_i * b_i

    The sums of a method are taken once for all its pairs, when a first pair needs them, so that a pair costs
    a subtraction. A draw whose sum falls short of the one that was found by less than
    4e-12 * sum_i (|a_i| + |b_i|) counts as reaching it.

    Args:
        values: one value per query and method, shape (n, methods).
        draws: random changes of sign, 1 or more.
        seed: 0 or more.
        key: see `cir_metrics.resampling.generator`.

    Raises:
        InputError: values of another shape, no queries, a value that is not finite, draws < 1.

    Example:
        >>> tests = PairedTests(np.array([[1, 0, 1], [1, 0, 1], [1, 0, 0], [1, 1, 1]]))
        >>> tests.test(0, 1).p, tests.test(0, 2).p
        (0.25, 1.0)
    """

    def __init__(self, values: ArrayLike, *, draws: int = DRAWS, seed: int = SEED, key: str = "") -> None:
        """Take the values; nothing is drawn yet."""
        self._values = np.ascontiguousarray(check_values(values, "values").T)
        self._draws, self._seed, self._key = check_draws(draws), seed, key
        self._sizes = exact_sums(np.abs(self._values).T)
        self._totals = exact_sums(self._values.T)
        self._sums: dict[int, FloatArray] = {}

    def test(self, first: int, second: int, ahead: Iterable[int] = ()) -> PValue:
        """The test of a pair, exact where that is cheap: see `randomisation_test`.

        Args:
            first: number of a method, from 0.
            second: that of another.
            ahead: methods whose sums are taken along if those of this pair have to be: many at once cost
                little more than one.
        """
        found = paired_differences(self._values[first], self._values[second])
        nonzero = found[found != 0]
        exact = _exact(nonzero)
        if exact is not None:
            return exact
        if not {first, second} <= self._sums.keys():
            self._take_sums(sorted({first, second, *ahead} - self._sums.keys()))
        # Four times: rounding sets apart each of the two totals, and each of two sums.
        allowance = 4 * NEAR * (self._sizes[first] + self._sizes[second])
        reached = abs(self._totals[first] - self._totals[second]) - allowance
        hits = int(np.count_nonzero(np.abs(self._sums[first] - self._sums[second]) >= reached))
        return PValue((1 + hits) / (1 + self._draws), "sampled", len(nonzero))

    def _take_sums(self, methods: list[int]) -> None:
        matrix = self._values[methods].T
        columns = ExactColumns(matrix)
        sums = np.empty((len(methods), self._draws))
        for start, flipped in _changes(len(matrix), self._draws, self._seed, self._key):
            block = self._totals[methods] - 2 * columns.sums(flipped)
            sums[:, start : start + len(flipped)] = block.T
        self._sums.update(zip(methods, sums, strict=True))


def holm(p_values: ArrayLike) -> FloatArray:
    """Holm's step-down correction: p-values that may be compared with one alpha, however many there are.

    With p_(1) <= ... <= p_(m): adjusted p_(i) = max over j <= i of min(1, (m - j + 1) * p_(j))
    (Holm, Scandinavian Journal of Statistics 1979). The probability of one false rejection or more in the
    family stays below alpha, whatever the tests have to do with each other.

    Args:
        p_values: the p-values of one family of tests, shape (tests,), each from 0 to 1.

    Returns:
        Adjusted p-values in the order given.

    Raises:
        InputError: another shape, no tests, a value outside [0, 1].

    Example:
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    array = check_array(p_values, "p_values", "fiu", "pass one a test, at least one")
    outside = np.flatnonzero(~((array >= 0) & (array <= 1)))
    if outside.size:
        place = int(outside[0])
        raise InputError(f"p_values[{place}] is {array[place]}; a probability is from 0 to 1. Fix: check it.")
    order = np.argsort(array, kind="stable")
    adjusted = np.empty(len(array))
    steps = np.arange(len(array), 0, -1)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, steps * array[order]))
    return adjusted


def _exact(nonzero: FloatArray) -> PValue | None:
    """The exact result where it is cheap to have, else None."""
    count = len(nonzero)
    if count == 0:
        return PValue(1.0, "enumerated", 0)
    sizes = np.abs(nonzero)
    if sizes.max() - sizes.min() <= NEAR * sizes.max():
        return PValue(_binomial(int(np.count_nonzero(nonzero > 0)), count), "binomial", count)
    if count <= _ENUMERATED:
        return PValue(_enumerated(nonzero), "enumerated", count)
    return None


def _binomial(positive: int, count: int) -> float:
    """P(|2X - count| >= |2 * positive - count|), X binomial with chance one half."""
    larger = max(positive, count - positive)
    if 2 * larger == count:
        return 1.0
    # Whole numbers: what a C library's logarithm returns depends on the processor, too.
    first = math.comb(count, larger) / (1 << count)
    # Each further term is the one before it times (count - k) / (k + 1).
    k = np.arange(larger, count)
    tail = first * (1 + float(exact_sums(np.cumprod((count - k) / (k + 1)))))
    return min(1.0, 2 * tail)


def _enumerated(nonzero: FloatArray) -> float:
    # A change of all signs changes no size: the first sign stays as it is.
    sums = nonzero[:1]
    for value in nonzero[1:]:
        sums = np.concatenate([sums + value, sums - value])
    reached = abs(float(exact_sums(nonzero))) - NEAR * float(exact_sums(np.abs(nonzero)))
    return int(np.count_nonzero(np.abs(sums) >= reached)) / len(sums)


def _changes(n: int, draws: int, seed: int, key: str) -> Iterator[tuple[int, FloatArray]]:
    """Random changes of sign: first draw of a block, and the block, shape (draws, n), 1 for a change."""
    # Whole words a draw, so that a draw is the same draw whatever the size of a block.
    words = -(-n // _WORD)
    bits = generator(seed, key)
    size = max(1, min(draws, _CELLS // n))
    for start in range(0, draws, size):
        rows = min(size, draws - start)
        raw = bits.random_raw(rows * words).astype("<u8").view(np.uint8)
        yield start, np.unpackbits(raw).reshape(rows, words * _WORD)[:, :n].astype(np.float64)


def kendall_tau(first: Sequence[float] | FloatArray, second: Sequence[float] | FloatArray) -> float | None:
    """Kendall's tau-b of two lists of values: how far they put the same things in the same order.

    tau_b = (C - D) / sqrt((P - T_1) (P - T_2)) over the P = n (n - 1) / 2 pairs, of which C stand in the same
    order in both, D in the opposite one, and T_1, T_2 are tied in the one or in the other (Kendall,
    Biometrika 1945). Pairs are counted in whole numbers.

    Args:
        first: values, shape (n,).
        second: of the same things in the same order.

    Returns:
        From -1 to 1; None where all values of one of the two are the same.

    Raises:
        InputError: the lists have different lengths.

    Example:
        >>> kendall_tau([1, 2, 3, 4], [1, 2, 4, 3])
        0.6666666666666666
        >>> kendall_tau([1, 2], [3, 3]) is None
        True
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape or one.ndim != 1:
        raise InputError(
            f"values have the shapes {one.shape} and {other.shape}. Fix: pass two lists of the same length."
        )
    totals = np.zeros(3)
    for place in range(len(one) - 1):
        order, beside = np.sign(one[place + 1 :] - one[place]), np.sign(other[place + 1 :] - other[place])
        totals += np.sum([order * beside, np.abs(order), np.abs(beside)], axis=1)
    agreeing, *untied = totals.tolist()
    return agreeing / math.sqrt(math.prod(untied)) if all(untied) else None
