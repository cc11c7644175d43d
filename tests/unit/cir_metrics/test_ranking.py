"""What the ranking functions refuse, by text, and how scores become ranks and lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from says import refusal

from cir_metrics.ranking import best_target_ranks, target_ranks, top_k

SCORES = [[0.1, 0.9, 0.5]]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([[0.1, float("nan")]], np.array([0])), "scores[0, 1] is NaN ... find where it arose"),
        (
            ([0.1, 0.2], np.array([0])),
            "scores: an array of shape (2,) and type float64 ... pass numbers",
        ),
        (([["a"]], np.array([0])), "scores: an array of shape (1, 1) and type <U1 ... pass numbers of shape"),
        (
            (np.zeros((0, 3)), np.array([], dtype=int)),
            "scores: an array of shape (0, 3) ... pass numbers",
        ),
        ((SCORES, np.array([0, 1])), "targets for 2 queries, scores for 1. Fix: give each its own."),
        ((SCORES, np.array([3])), "targets[0] holds 3; columns are 0 to 2. Fix: correct it."),
        ((SCORES, np.array([-1])), "targets[0] holds -1; columns are 0 to 2. Fix: correct it."),
        ((SCORES, np.array([[1, 1]])), "targets[0] is [1, 1] ... name it once"),
        ((SCORES, [np.array([], dtype=int)]), "targets[0] is []. Fix: give one column number or more."),
        ((SCORES, np.array([0.5])), "targets[0] is [0.5]. Fix: give one column number or more."),
    ],
)
def test_target_ranks_refuse_scores_and_targets_that_do_not_fit(arguments: Any, text: str) -> None:
    for function in (target_ranks, best_target_ranks):
        with refusal(text):
            function(*arguments)


@pytest.mark.parametrize(
    ("excluded", "text"),
    [
        ([0], "excluded[0] is 0, a target of that query. Fix: exclude another."),
        ([3], "excluded[0] is 3; columns are 0 to 2. Fix: use -1 for none."),
        ([-2], "excluded[0] is -2; columns are 0 to 2. Fix: use -1 for none."),
        (
            [1, 1],
            "excluded: an array of shape (2,) and type int64. Fix: give one column a query",
        ),
        (
            [0.5],
            "excluded: an array of shape (1,) and type float64. Fix: give one column a query",
        ),
    ],
)
def test_malformed_excluded_columns_are_refused(excluded: Any, text: str) -> None:
    with refusal(text):
        target_ranks(SCORES, np.array([0]), excluded=excluded)


@pytest.mark.parametrize(
    ("scores", "ids", "k", "text"),
    [
        (SCORES, ["a", "b"], 1, "2 gallery ids but 3 columns of scores. Fix: name each column."),
        (SCORES, ["a", "b", "a"], 1, "gallery_ids[2] is 'a', which stands at [0] already ... keep the first"),
        (SCORES, ["a", None, "c"], 1, "gallery_ids[1] is None; an image id is a string. Fix: drop it."),
        (SCORES, ["a", "b", "c"], "2", "k='2'; a cutoff is a whole number, 1 or more. Fix: pass k=10, say."),
        ([[1, 2], [1]], ["a", "b"], 1, "scores is not a rectangular array: its rows differ in length"),
        (SCORES, ["a", "b", "c"], 0, "k=0; a cutoff is a whole number, 1 or more. Fix: pass k=10, say."),
        ([[float("nan"), 0.0, 0.0]], ["a", "b", "c"], 1, "scores[0, 0] is NaN ... find where it arose"),
    ],
)
def test_top_k_refuses_scores_and_ids_that_do_not_fit(scores: Any, ids: list[str], k: int, text: str) -> None:
    with refusal(text):
        top_k(scores, ids, k)


def test_whole_numbers_keep_their_order_beyond_what_floats_can_tell_apart() -> None:
    scores = np.array([[2**60, 2**60 + 1, np.iinfo(np.int64).min]])
    assert top_k(scores, ["a", "b", "c"], 3) == [["b", "a", "c"]]
    assert target_ranks(scores, np.array([1])).tolist() == [1]
    assert best_target_ranks(scores, [np.array([0, 2])]).tolist() == [2]
    assert top_k(np.array([[3, 255, 0]], dtype=np.uint8), ["a", "b", "c"], 3) == [["b", "a", "c"]]


def test_targets_that_tie_do_not_stand_in_each_others_way() -> None:
    scores = np.array([[0.9, 0.9, 0.9, 0.1]])
    assert target_ranks(scores, np.array([[0, 1]])).tolist() == [[3, 3]]
    assert best_target_ranks(scores, np.array([[0, 1]])).tolist() == [2]


def test_a_plain_list_of_columns_is_one_target_a_query() -> None:
    assert [ranks.tolist() for ranks in target_ranks([[0.1, 0.9], [0.1, 0.9]], [0, 1])] == [[2], [1]]  # type: ignore[list-item]


def test_excluded_images_are_never_listed() -> None:
    assert top_k(SCORES, ["a", "b", "c"], 5, excluded=[1]) == [["c", "a"]]
    assert target_ranks(SCORES, np.array([0]), excluded=[1]).tolist() == [2]


def test_whole_numbers_are_scores() -> None:
    assert target_ranks(np.array([[3, 1, 2]]), np.array([2])).tolist() == [2]
