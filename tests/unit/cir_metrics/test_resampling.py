"""Bootstrap of means and medians: plain-Python twins, scipy beside it, and what draws are keyed by."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from scipy import stats

from cir_metrics import resampling
from cir_metrics.errors import InputError
from cir_metrics.resampling import bootstrap_means, bootstrap_medians, generator, percentile_interval

VALUES = np.random.default_rng(3).random((23, 3)).round(2)


def drawn_places(n: int, draws: int, seed: int, key: str) -> list[list[int]]:
    """The queries of each draw, taken one draw at a time."""
    random = np.random.Generator(generator(seed, key))
    return [random.integers(0, n, size=n, dtype=np.uint32).tolist() for _ in range(draws)]


@pytest.mark.parametrize("n", [1, 2, 22, 23])
def test_means_are_those_of_a_plain_loop(n: int) -> None:
    values = VALUES[:n]
    found = bootstrap_means(values, draws=37, seed=5, key="cirr/val")
    for row, places in zip(found, drawn_places(n, 37, 5, "cirr/val"), strict=True):
        for column in range(3):
            expected = sum(float(values[place, column]) for place in places) / n
            assert row[column] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 22, 23])
def test_medians_are_those_of_a_plain_loop(n: int) -> None:
    values = VALUES[:n, 0]
    found = bootstrap_medians(values, draws=37, seed=5)
    expected = [statistics.median(float(values[p]) for p in places) for places in drawn_places(n, 37, 5, "")]
    assert found.tolist() == expected


def test_the_size_of_a_block_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bootstrap_means(VALUES, draws=50), bootstrap_medians(VALUES[:, 0], draws=50)
    # Eighths are exact in floating point, so that their sums are the same in any order.
    eighths = np.floor(VALUES * 8) / 8
    exact = bootstrap_means(eighths, draws=50)
    for cells in (1, 23, 100):
        monkeypatch.setattr(resampling, "_CELLS", cells)
        assert bootstrap_means(eighths, draws=50).tolist() == exact.tolist()
        assert bootstrap_means(VALUES, draws=50) == pytest.approx(whole[0], abs=1e-14)
        assert bootstrap_medians(VALUES[:, 0], draws=50).tolist() == whole[1].tolist()


def test_seed_and_key_choose_the_draws() -> None:
    same = bootstrap_means(VALUES, draws=9, seed=1, key="a")
    assert bootstrap_means(VALUES, draws=9, seed=1, key="a").tolist() == same.tolist()
    assert bootstrap_means(VALUES, draws=9, seed=2, key="a").tolist() != same.tolist()
    assert bootstrap_means(VALUES, draws=9, seed=1, key="b").tolist() != same.tolist()


def test_the_interval_is_near_that_of_scipy() -> None:
    values = np.random.default_rng(8).random(400) ** 2
    low, high = percentile_interval(bootstrap_means(values, draws=10_000))
    other = stats.bootstrap((values,), np.mean, n_resamples=10_000, method="percentile", rng=1)
    # Two samples of 10,000 draws: the error of a 2.5 % quantile is about 0.03 standard errors.
    error = values.std() / np.sqrt(len(values))
    assert low == pytest.approx(other.confidence_interval.low, abs=0.15 * error)
    assert high == pytest.approx(other.confidence_interval.high, abs=0.15 * error)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap_means([]), r"values: an array of shape \(0,\)"),
        (lambda: bootstrap_means(np.zeros((2, 2, 2))), r"values: an array of shape \(2, 2, 2\)"),
        (lambda: bootstrap_means([0.5, float("nan")]), r"values\[1, 0\] is nan. Fix: find where it arose."),
        (
            lambda: bootstrap_means([1.0], draws=0),
            r"draws=0; draws are .* Fix: use 10000.",
        ),
        (
            lambda: bootstrap_means([1.0], seed=-1),
            r"seed=-1; a seed is a whole number from 0 on.",
        ),
        (
            lambda: bootstrap_medians(np.zeros((2, 2))),
            r"shape \(2, 2\) and type float64. Fix: pass one value",
        ),
        (
            lambda: percentile_interval([1.0], level=95),
            r"level=95; a level is above 0 and below 1. Fix: use 0",
        ),
        (
            lambda: percentile_interval([]),
            r"draws: an array of shape \(0,\)",
        ),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=message):
        call()
