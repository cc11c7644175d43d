"""What holds of ranks whatever the scores."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from metrics_twins import best_first
from numpy.typing import NDArray

from cir_metrics import evaluation as coding
from cir_metrics import measures
from cir_metrics.ranking import best_target_ranks, target_ranks, top_k

Scores = NDArray[np.float64]

# Few distinct values, so that ties are common; infinities have a place too.
scores_with_ties = arrays(
    np.float64, (6, 9), elements=st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 1.0, np.inf])
)
any_scores = st.one_of(scores_with_ties, arrays(np.float64, (6, 9), elements=st.floats(-1, 1)))
columns = arrays(np.int64, (6,), elements=st.integers(0, 8))
orders = st.permutations(range(9))
IDS = [f"image_{number}" for number in range(9)]


def rank_twin(row: Scores, target: int, excluded: int) -> int:
    rivals = [column for column in range(len(row)) if column not in (target, excluded)]
    return 1 + sum(row[column] >= row[target] for column in rivals)


@given(any_scores, columns, columns)
def test_ranks_equal_a_plain_reading(
    scores: Scores, targets: NDArray[np.int64], dropped: NDArray[np.int64]
) -> None:
    dropped = np.where(dropped == targets, -1, dropped)
    expected = [rank_twin(row, *pair) for row, *pair in zip(scores, targets, dropped, strict=True)]
    assert target_ranks(scores, targets, excluded=dropped).tolist() == expected
    assert best_target_ranks(scores, targets, excluded=dropped).tolist() == expected


@given(any_scores, orders)
def test_each_target_of_many_has_its_own_rank(scores: Scores, order: list[int]) -> None:
    targets = np.array([order[:3]] * 6)
    ranks = target_ranks(scores, targets)
    for place in range(3):
        assert (ranks[:, place] == target_ranks(scores, targets[:, place])).all()
    ragged = target_ranks(scores, [row[: 1 + query % 3] for query, row in enumerate(targets)])
    assert [each.tolist() for each in ragged] == [
        row[: 1 + query % 3].tolist() for query, row in enumerate(ranks)
    ]


@given(any_scores, orders)
def test_best_rank_is_the_worst_place_that_ties_allow(scores: Scores, order: list[int]) -> None:
    targets = order[:3]
    found = best_target_ranks(scores, np.array([targets] * 6))
    for row, best in zip(scores, found, strict=True):
        # Everyone sorted by score, images that are not targets before targets where they tie.
        worst = sorted(range(9), key=lambda column: (-row[column], column in targets))
        assert best == 1 + min(worst.index(target) for target in targets)
    assert (found <= target_ranks(scores, np.array([targets] * 6)).min(axis=1)).all()


@given(any_scores, columns, st.integers(1, 9))
def test_top_k_is_the_head_of_the_whole_order(scores: Scores, dropped: NDArray[np.int64], k: int) -> None:
    lists = top_k(scores, IDS, k, excluded=dropped)
    for number, (row, drop, ids) in enumerate(zip(scores, dropped, lists, strict=True)):
        kept = {IDS[column]: row[column] for column in range(9) if column != drop}
        assert ids == best_first(kept, str(number))[:k]


def test_constant_scorer_wins_nothing() -> None:
    ranks = target_ranks(np.zeros((50, 100)), np.arange(50))
    assert (ranks == 100).all()
    assert measures.recall_at_k(ranks, k=99) == 0.0


def test_unlisted_is_beyond_every_cutoff() -> None:
    assert measures.recall_at_k.per_query(np.array([coding.UNLISTED]), 10**12).tolist() == [0.0]
