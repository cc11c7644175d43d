"""Randomisation test and Holm's correction: twins, scipy beside them, the null case."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cir_metrics import significance
from cir_metrics.errors import InputError
from cir_metrics.significance import PairedTests, holm, paired_differences, randomisation_test


def precisions(ranks: tuple[int, ...]) -> list[Fraction]:
    return [Fraction(found, rank) for found, rank in enumerate(ranks, start=1)]


def test_values_that_rounding_alone_sets_apart_are_ties() -> None:
    by_value: dict[Fraction, list[tuple[int, ...]]] = {}
    for ranks in itertools.combinations(range(1, 51), 3):
        by_value.setdefault(sum(precisions(ranks)), []).append(ranks)
    pairs = [(all_of[0], other) for all_of in by_value.values() for other in all_of[1:]]
    one, other = (
        np.array([sum(float(each) for each in precisions(pair[side])) for pair in pairs]) for side in (0, 1)
    )
    assert np.count_nonzero(one != other) > 100
    assert not paired_differences(one, other).any()
    # The nearest two values that differ stay apart.
    rising = sorted(by_value)
    near = min(itertools.pairwise(rising), key=lambda pair: pair[1] - pair[0])
    values = [[sum(float(each) for each in precisions(by_value[value][0]))] for value in near]
    assert paired_differences(*values)[0] == pytest.approx(float(near[0] - near[1]), rel=1e-6)


@given(
    st.lists(
        st.tuples(st.floats(0, 60), st.floats(-1e-11, 1e-11)).map(lambda each: (each[0], sum(each))),
        min_size=1,
    )
)
def test_paired_differences_are_their_slow_twin(pairs: list[tuple[float, float]]) -> None:
    one, other = ([pair[side] for pair in pairs] for side in (0, 1))
    found = paired_differences(one, other)
    for (a, b), each in zip(pairs, found.tolist(), strict=True):
        assert each == (0 if abs(a - b) <= 1e-12 * max(abs(a), abs(b)) else a - b)
    assert np.array_equal(paired_differences(other, one), -found)
    assert paired_differences(np.array([one]).T, np.array([other]).T).shape == (len(pairs), 1)


def all_signs(differences: list[float]) -> float:
    """The definition, word for word."""
    observed = abs(sum(differences))
    totals = [
        abs(sum(sign * each for sign, each in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    return sum(total >= observed - 1e-9 for total in totals) / len(totals)


@given(st.lists(st.sampled_from([0.0, 0.125, -0.5, 1.0, -1.0, 0.3]), min_size=1, max_size=9))
def test_few_differences_are_tested_exactly(differences: list[float]) -> None:
    (found,) = randomisation_test(differences, draws=1)
    assert found.exact
    assert found.p == pytest.approx(all_signs(differences), abs=1e-12)
    assert found.nonzero == sum(each != 0 for each in differences)


@pytest.mark.parametrize(("wins", "losses"), [(0, 1), (3, 3), (0, 40), (70, 45), (5000, 4800), (30_000, 1)])
def test_recall_is_tested_as_mcnemar_does(wins: int, losses: int) -> None:
    differences = np.repeat([1.0, -1.0, 0.0], [wins, losses, 100])
    (found,) = randomisation_test(differences, draws=1)
    expected = stats.binomtest(wins, wins + losses, 0.5).pvalue
    assert found.test == "binomial"
    assert found.p == pytest.approx(expected, rel=1e-8, abs=1e-300)


def test_enumeration_equals_scipy() -> None:
    differences = np.random.default_rng(4).normal(0.4, 1, 12)
    (found,) = randomisation_test(differences)
    other = stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=np.inf, vectorized=True
    )
    assert found.test == "enumerated"
    assert found.p == pytest.approx(other.pvalue, abs=1e-12)


def test_samples_are_near_the_exact_test() -> None:
    # All of one size but for one, so that what is sampled has an exact value next to it.
    differences = np.repeat([1.0, -1.0, 0.0], [60, 45, 200])
    nearly = differences.copy()
    nearly[0] = 1.0 + 1e-6
    exact, sampled = randomisation_test(differences)[0], randomisation_test(nearly)[0]
    assert (exact.test, sampled.test) == ("binomial", "sampled")
    # The sign of that one query breaks ties of the total by 1e-6: half of them fall below.
    ties = stats.binom.pmf(60, 105, 0.5)
    assert sampled.p == pytest.approx(exact.p - ties, abs=4 * np.sqrt(exact.p / 10_000))


def test_samples_are_those_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = np.random.default_rng(6).integers(-4, 7, 70) / 4
    bits = significance.generator(11, "cirr/val")
    hits = 0
    for _ in range(200):
        words = [int(word) for word in bits.random_raw(2)]
        # Bytes from the lowest, bits of a byte from the highest.
        flags = [
            word >> (8 * byte + bit) & 1 for word in words for byte in range(8) for bit in range(7, -1, -1)
        ]
        total = sum(-each if flag else each for flag, each in zip(flags, differences.tolist(), strict=False))
        hits += abs(total) >= abs(float(differences.sum()))
    for cells in (2**20, 1, 300):
        monkeypatch.setattr(significance, "_CELLS", cells)
        (found,) = randomisation_test(differences, draws=200, seed=11, key="cirr/val")
        assert found.p == (1 + hits) / 201


def test_a_column_has_the_same_p_beside_others() -> None:
    random = np.random.default_rng(2)
    table = random.integers(-3, 4, (90, 3)) / 3
    table[:40, 1] = 0
    together = randomisation_test(table, draws=500)
    assert together == [randomisation_test(column, draws=500)[0] for column in table.T]
    assert [each.p for each in randomisation_test(-table, draws=500)] == [each.p for each in together]


def test_no_difference_is_not_a_finding() -> None:
    (found,) = randomisation_test(np.zeros(1000))
    assert (found.p, found.nonzero, found.exact) == (1.0, 0, True)


@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 150),
    denominators=st.sampled_from([(1,), (2,), (28, 42, 48), (3, 7, 50)]),
)
def test_shared_sums_give_the_p_of_every_pair_alone(seed: int, n: int, denominators: tuple[int, ...]) -> None:
    random = np.random.default_rng(seed)
    # Sums of fractions in an order of their own, so that equal values are stored apart.
    parts = np.array([random.integers(0, each + 1, (n, 4)) / each for each in denominators])
    table = np.stack([parts[random.permutation(len(parts)), :, m].sum(axis=0) for m in range(4)], axis=1)
    table[: n // 2, 1] = table[: n // 2, 0] * (1 + 1e-15)
    tests = PairedTests(table, draws=300, seed=seed, key="circo/val")
    for one, other in itertools.permutations(range(4), 2):
        differences = paired_differences(table[:, one], table[:, other])
        (alone,) = randomisation_test(differences, draws=300, seed=seed, key="circo/val")
        assert tests.test(one, other, ahead=range(other)) == alone


def test_holm_equals_a_case_worked_by_hand() -> None:
    # Sorted: 0.005 * 4, 0.01 * 3, 0.03 * 2, 0.04 * 1 -> 0.02, 0.03, 0.06, 0.04 raised to 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02], abs=1e-15)
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_step_down_in_a_plain_loop(p_values: list[float]) -> None:
    found = holm(p_values).tolist()
    largest, expected = 0.0, {}
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    for step, place in enumerate(ranked):
        largest = max(largest, min(1.0, (len(p_values) - step) * p_values[place]))
        expected[place] = largest
    assert found == [expected[place] for place in range(len(p_values))]
    assert all(raised >= p for raised, p in zip(found, p_values, strict=True))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: paired_differences([1.0], [1.0, 2.0]),
            r"first has shape \(1,\) and second \(2,\). Fix: pass",
        ),
        (lambda: paired_differences([1.0], [float("nan")]), r"second\[0, 0\] is nan"),
        (
            lambda: randomisation_test([1.0], draws=1.5),
            r"draws=1.5; draws are counted, a whole number from 1",
        ),
        (lambda: randomisation_test([0.5] + [1.0] * 20, seed=1.5), r"seed=1.5; a seed is a whole number"),
        (lambda: randomisation_test([]), r"differences: an array of shape \(0,\)"),
        (lambda: randomisation_test([float("inf")]), r"differences\[0, 0\] is inf"),
        (lambda: randomisation_test([1.0], draws=0), r"draws=0; draws are counted, a whole number from 1 on"),
        (lambda: PairedTests([[1.0], [float("nan")]]), r"values\[1, 0\] is nan"),
        (lambda: PairedTests([[1.0]], draws=0), r"draws=0; draws are counted, a whole number from 1 on"),
        (lambda: holm([]), r"p_values: an array of shape \(0,\) and type float64. Fix: pass one a test"),
        (lambda: holm([0.5, 1.5]), r"p_values\[1\] is 1.5; a probability is from 0 to 1. Fix: check it."),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
