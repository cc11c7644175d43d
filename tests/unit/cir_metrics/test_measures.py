"""What the metrics refuse when they are called, by text."""

from __future__ import annotations

import pickle
import typing
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from says import refusal

from cir_metrics import evaluation as coding
from cir_metrics import measures
from cir_metrics.errors import InputError

MASK = [[True, False]]


@pytest.mark.parametrize("k", [0, -3])
def test_every_measure_checks_its_cutoff(k: int) -> None:
    calls: list[Callable[[], object]] = [
        lambda: measures.recall_at_k([1], k),
        lambda: measures.recall_subset([1], k),
        lambda: measures.map_subset([1], k),
        lambda: measures.map_at_k(MASK, [1], k),
        lambda: measures.pnr_map(MASK, [[False, True]], [1], k),
        lambda: measures.hits_at_k([[1]], [1], k),
        lambda: measures.final_recall([[1]], [1], k),
        lambda: measures.final_mrr([[1]], [1], k),
        lambda: measures.hits_auc([[1]], [1], k),
        lambda: measures.turn_recall([[1]], [1], k),
    ]
    for call in calls:
        with refusal(f"k={k}; a cutoff is a whole number, 1 or more. Fix: pass k=10, say."):
            call()


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        (
            [],
            "ranks: an array of shape (0,) ... (n_queries,), with at least one query.",
        ),
        (
            [[1]],
            "ranks: an array of shape (1, 1) ... (n_queries,), with at least one query.",
        ),
        ([1.0], "ranks: an array of ... type float64. Fix: pass whole numbers of shape"),
        ([3, 0], "ranks[1] is 0; ranks count from 1. Fix: add 1 to 0-based ranks."),
    ],
)
def test_malformed_ranks_are_refused(ranks: Any, text: str) -> None:
    for measure in (lambda: measures.recall_at_k(ranks, 5), lambda: measures.mean_rank(ranks)):
        with refusal(text):
            measure()


@pytest.mark.parametrize("measure", [measures.mean_rank, measures.median_rank])
def test_an_unlisted_rank_has_no_mean(measure: Callable[..., float]) -> None:
    with refusal("ranks[1] is UNLISTED. Fix: give unlisted targets a rank by cir_metrics.evaluation.censor."):
        measure([1, coding.UNLISTED])


@pytest.mark.parametrize(
    ("positive", "n_positives", "text"),
    [
        (
            [True],
            [1],
            "positive: an array of shape (1,) and type bool ... of shape (n_queries, depth)",
        ),
        ([[1, 0]], [1], "positive: an array of shape (1, 2) and type int64 ... pass booleans of shape"),
        (
            np.zeros((0, 2), dtype=bool),
            [],
            "positive: an array of shape (0, 2) and type bool ... pass",
        ),
        (MASK, [1, 2], "n_positives: an array of shape (2,) and type int64. Fix: pass 1 integers."),
        (MASK, [1.5], "n_positives: an array of shape (1,) and type float64. Fix: pass 1 integers."),
        (MASK, [0], "n_positives[0] is 0, 1 are marked. Fix: count all, 1 or more."),
        ([[False]], [0], "n_positives[0] is 0, 0 are marked. Fix: count all, 1 or more."),
        ([[True, True]], [1], "n_positives[0] is 1, 2 are marked. Fix: count all, 1 or more."),
    ],
)
def test_map_refuses_masks_and_counts_that_do_not_fit(positive: Any, n_positives: Any, text: str) -> None:
    with refusal(text):
        measures.map_at_k(positive, n_positives, 5)


def test_pnr_map_refuses_masks_that_do_not_fit_and_unknown_variants() -> None:
    with refusal("positive has shape (1, 2), negative (1, 1). Fix: code both to one depth."):
        measures.pnr_map(MASK, [[False]], [1], 5)
    with refusal("place [0, 0] is positive and hard negative. Fix: an image is one of the two."):
        measures.pnr_map(MASK, [[True, False]], [1], 5)
    with refusal("variant='code': pnr_map has no such variant. Fix: use one of 'equation', 'released_code'."):
        measures.pnr_map(MASK, [[False, True]], [1], 5, variant="code")


@pytest.mark.parametrize(
    ("ranks", "num_turns", "text"),
    [
        (
            [1],
            [1],
            "ranks: an array of shape (1,) ... (n_sessions, max_turns), with at least one query",
        ),
        (
            np.zeros((0, 2), dtype=int),
            [],
            "ranks: an array of shape (0, 2) ... (n_sessions, max_turns),",
        ),
        ([[1.5]], [1], "ranks: an array of ... type float64. Fix: pass whole numbers of shape"),
        ([[1, 2], [1, 0]], [2, 2], "ranks[1, 1] is 0; ranks count from 1. Fix: add 1 to 0-based ranks."),
        ([[1, 2]], [3], "num_turns[0] is 3, ranks hold 2 turns. Fix: use 1 to 2."),
        ([[1, 2]], [0], "num_turns[0] is 0, ranks hold 2 turns. Fix: use 1 to 2."),
        ([[1, 2]], [1, 1], "num_turns: an array of shape (2,) and type int64. Fix: pass 1 integers."),
    ],
)
def test_malformed_sessions_are_refused(ranks: Any, num_turns: Any, text: str) -> None:
    at_the_end = (measures.final_recall, measures.final_mrr)
    for measure in (measures.hits_at_k, *at_the_end, measures.hits_auc, measures.turn_recall):
        with refusal(text):
            measure(ranks, num_turns, 5)


def test_one_turn_gives_the_first_hits() -> None:
    assert measures.hits_auc([[3], [30]], [1, 1], 10) == 0.5


def test_masks_without_places_score_nothing() -> None:
    empty = np.zeros((2, 0), dtype=bool)
    assert measures.map_at_k(empty, [1, 1], 5) == 0.0
    assert measures.pnr_map(empty, empty, [1, 1], 5, variant="released_code") == 0.0
    assert (coding.first_ranks(empty) == coding.UNLISTED).all()


def test_a_call_without_an_argument_names_the_metric() -> None:
    with pytest.raises(TypeError, match=r"recall_at_k\(\): missing a required argument: 'k'"):
        measures.recall_at_k([1, 2])  # type: ignore[call-arg]


def test_an_unknown_variant_is_refused_for_the_values_of_queries_too() -> None:
    masks = np.array([[False, True]]), np.array([[True, False]])
    with pytest.raises(InputError, match="equaton"):
        measures.pnr_map.per_query(*masks, np.array([1]), k=2, variant="equaton")


def test_a_metric_and_its_values_of_queries_go_to_other_processes() -> None:
    ranks = np.array([1, 3, 12])
    sent = pickle.loads(pickle.dumps(measures.recall_at_k.per_query))
    assert sent(ranks, k=10).tolist() == [1.0, 1.0, 0.0]
    assert typing.get_type_hints(measures.recall_at_k)["return"] is float
