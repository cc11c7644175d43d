"""Both rules of consensus on tables made by hand, and against twins in plain Python."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cir_datasets.construction.zerosight.consensus import agreed, k_of

# Five captions. 0, 1 and 2 agree; 3 is near 4 alone; 4 is near nobody else.
TABLE = np.array(
    [
        [1.00, 0.80, 0.70, 0.30, 0.10],
        [0.80, 1.00, 0.60, 0.20, 0.10],
        [0.70, 0.60, 1.00, 0.10, 0.00],
        [0.30, 0.20, 0.10, 1.00, 0.85],
        [0.10, 0.10, 0.00, 0.85, 1.00],
    ]
)


def test_the_paper_s_rule_takes_the_caption_with_the_largest_k() -> None:
    # k of caption 0: 2 of 4 others are at 0.5 or more, 3 of 4 only at 0.3: k = min(0.7, 2/4) = 0.5.
    assert [k_of(np.delete(row, place)) for place, row in enumerate(TABLE)] == [0.5, 0.5, 0.5, 0.3, 0.25]
    found = agreed(TABLE, "paper")
    assert (found.centre, found.members, found.value) == (0, (0, 1, 2), 0.5)


def test_the_released_rule_takes_the_highest_mean_over_neighbours() -> None:
    # Means over neighbours at 0.59 or more: 0.75, 0.7, 0.65, 0.85, 0.85; of 3 and 4 the first.
    found = agreed(TABLE, "released", 0.59)
    assert (found.centre, found.members) == (3, (3, 4))
    assert found.value == pytest.approx(0.85)


def test_of_equal_means_the_released_rule_takes_more_neighbours() -> None:
    table = np.array([[1, 0.8, 0.1, 0.1], [0.8, 1, 0.1, 0.1], [0.1, 0.1, 1, 0.8], [0.1, 0.1, 0.8, 1]])
    assert agreed(table, "released").centre == 0  # type: ignore[union-attr]
    more = np.full((5, 5), 0.1)
    more[:2, :2] = more[2:, 2:] = 0.75
    assert agreed(more, "released").members == (2, 3, 4)  # type: ignore[union-attr]
    star = np.zeros((10, 10))
    star[0, 1] = star[1, 0] = 0.8
    star[2, 3:9] = star[3:9, 2] = 0.8
    assert agreed(star, "released").centre == 2  # type: ignore[union-attr]


def test_a_neighbour_at_the_threshold_is_one_and_without_any_the_query_goes() -> None:
    table = np.array([[1, 0.59], [0.59, 1]])
    assert agreed(table, "released", 0.59) is not None
    assert agreed(table, "released", 0.590001) is None
    assert agreed(table, "paper").members == (0, 1)  # type: ignore[union-attr]


def test_k_is_at_least_nothing_and_takes_a_similarity_between_two_shares() -> None:
    assert k_of(np.array([-0.5, -0.2])) == 0.0
    assert k_of(np.array([0.7])) == 0.7
    assert k_of(np.array([1.0, 1.0])) == 1.0


def _slow_k(others: list[float]) -> float:
    """Equation 3 word by word: every number at which the share or the comparison changes is tried."""
    number = len(others)
    tried = {0.0, *others, *(count / number for count in range(number + 1))}
    return max(eps for eps in tried if eps >= 0 and sum(value >= eps for value in others) / number >= eps)


def _slow_released(table: list[list[float]], least: float) -> tuple[int, tuple[int, ...]] | None:
    best = None
    for place, row in enumerate(table):
        near = [other for other in range(len(row)) if other != place and row[other] >= least]
        mean = Fraction(sum(round(100 * row[n]) for n in near), 100 * max(1, len(near)))
        if near and (best is None or (mean, len(near)) > best[0]):
            best = ((mean, len(near)), place, near)
    return None if best is None else (best[1], tuple(sorted((best[1], *best[2]))))


tables = st.integers(2, 7).flatmap(
    lambda n: st.lists(st.integers(-100, 100), min_size=n * n, max_size=n * n).map(
        lambda values: np.array(values).reshape(n, n) / 100
    )
)


@given(tables)
def test_both_rules_agree_with_their_twins(table: np.ndarray) -> None:
    whole = np.maximum(table, table.T)
    ks = [_slow_k([float(v) for v in np.delete(row, place)]) for place, row in enumerate(whole)]
    found = agreed(whole, "paper")
    assert found.value == max(ks)
    assert found.centre == ks.index(max(ks))
    expected = {place for place in range(len(whole)) if whole[found.centre, place] >= max(ks)}
    assert set(found.members) == expected | {found.centre}
    released, slow = agreed(whole, "released", 0.2), _slow_released(whole.tolist(), 0.2)
    assert (None if released is None else (released.centre, released.members)) == slow
