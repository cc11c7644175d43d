"""Sums that no processor changes: beside exact fractions, in any order, and through any matrix product."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cir_metrics.measures import map_at_k
from cir_metrics.resampling import ExactColumns, bootstrap_means, generator
from cir_metrics.significance import randomisation_test
from cir_metrics.sums import exact_mean, exact_means, exact_sums

ANY = st.floats(-1e150, 1e150) | st.floats(-1, 1) | st.sampled_from([5e-324, -5e-324, 1e-300, 0.1, 1 / 3])


def precisions(n: int) -> NDArray[np.float64]:
    """AP@50 of n invented queries: fractions that no double holds."""
    random = np.random.default_rng(7)
    positive = random.random((n, 50)) < 0.1
    return map_at_k.per_query(positive, positive.sum(axis=1) + 3, 50)


@given(st.lists(ANY, min_size=1, max_size=40))
def test_sums_and_means_are_the_doubles_nearest_to_the_true_ones(values: list[float]) -> None:
    true = sum(map(Fraction, values))
    assert float(exact_sums(values)) == float(true)
    assert exact_mean(values) == float(true / len(values))


@given(st.lists(ANY, min_size=1, max_size=40), st.randoms())
def test_exact_sums_do_not_depend_on_the_order_of_their_terms(values: list[float], random: object) -> None:
    expected = exact_sums(np.array([values, values[::-1]]).T)
    assert expected[0] == expected[1]
    shuffled = sorted(values, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert exact_sums(shuffled) == expected[0]


def test_a_column_of_its_own_and_one_beside_large_numbers_have_the_same_sum() -> None:
    small = precisions(1000)
    beside = np.stack([small, np.arange(1000.0) * 1e9, np.zeros(1000)], axis=1)
    assert exact_sums(beside).tolist() == [math.fsum(small), 499_500 * 1e9, 0.0]


def test_empty_arrays_and_truth_values_are_summed_too() -> None:
    assert exact_sums(np.empty((0, 3))).tolist() == [0.0, 0.0, 0.0]
    assert exact_sums(np.empty((4, 0))).shape == (0,)
    assert exact_means(np.full((7, 2, 3), 0.1)).tolist() == [[0.1] * 3] * 2
    assert exact_means(np.array([[True], [False]])).tolist() == [0.5]


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1.7e308])
def test_what_has_no_finite_sum_is_added_up_as_it_is(value: float) -> None:
    with np.errstate(over="ignore"):
        found, expected = exact_sums([value, value, 0.5]), np.sum([value, value, 0.5])
    np.testing.assert_equal(float(found), float(expected))


@given(
    st.integers(1, 30).flatmap(
        lambda n: st.tuples(
            st.lists(st.lists(ANY, min_size=2, max_size=2), min_size=n, max_size=n),
            st.lists(st.integers(0, n - 1), min_size=n, max_size=n),
        )
    )
)
def test_weighted_sums_are_true_to_two_roundings(case: tuple[list[list[float]], list[int]]) -> None:
    rows, drawn = case
    counts = np.bincount(drawn, minlength=len(rows)).astype(np.float64)
    found = ExactColumns(np.array(rows)).sums(counts[None])[0]
    for column in range(2):
        true = sum(int(count) * Fraction(row[column]) for count, row in zip(counts, rows, strict=True))
        sizes = sum(int(count) * abs(Fraction(row[column])) for count, row in zip(counts, rows, strict=True))
        assert abs(Fraction(found[column]) - true) <= sizes * Fraction(2) ** -52


def test_products_do_not_depend_on_what_multiplies() -> None:
    columns = np.stack([precisions(5000), precisions(5000)[::-1], np.arange(5000.0)], axis=1)
    counts = np.random.default_rng(1).multinomial(5000, np.full(5000, 1 / 5000), 20).astype(np.float64)
    exact = ExactColumns(columns)
    found = exact.sums(counts)
    order = np.random.default_rng(2).permutation(5000)
    assert (ExactColumns(columns[order]).sums(counts[:, order]) == found).all()
    assert (np.concatenate([exact.sums(row[None]) for row in counts]) == found).all()
    true = [
        [math.fsum(np.repeat(column, row.astype(int)).tolist()) for column in columns.T] for row in counts
    ]
    assert (found == true).all()
    # The test can fail: a plain product rounds otherwise in another order.
    plain = counts @ columns
    assert (plain != counts[:, order] @ columns[order]).any()


def test_the_draws_of_the_bootstrap_are_exact() -> None:
    values = precisions(300)
    places = np.random.Generator(generator(3, "a")).integers(0, 300, size=(40, 300), dtype=np.uint32)
    true = [float(sum(Fraction(values[place]) for place in row)) / 300 for row in places]
    assert bootstrap_means(values, draws=40, seed=3, key="a").tolist() == true


def test_the_binomial_test_is_made_of_whole_numbers() -> None:
    for positive, count in ((1, 1), (3, 17), (700, 1500), (1900, 4000)):
        signs = np.repeat([1.0, -1.0], [positive, count - positive])
        larger = max(positive, count - positive)
        tail = sum(math.comb(count, k) for k in range(larger, count + 1))
        assert randomisation_test(signs)[0].p == pytest.approx(float(Fraction(2 * tail, 2**count)), rel=1e-12)
