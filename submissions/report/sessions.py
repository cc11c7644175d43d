"""Sessions by turn and by length: Hits@K and Recall@K, ranks, and the random ranker beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cir_metrics.coding import IntArray, censor
from cir_metrics.measures import (
    area_under_hits,
    final_recall,
    hits_at_k,
    mean_rank,
    median_rank,
    recall_at_k,
)
from cir_metrics.sums import FloatArray, exact_mean, exact_means
from submissions.report.grouping import Group, Grouping

if TYPE_CHECKING:
    from submissions.report.chance import Chance

_OVER_TURNS = (
    "hits: a target within K at that turn or before, over all sessions; one that has ended keeps its value."
)
_AT_TURN = (
    "recall and ranks: at that turn itself, over the sessions that still run; an unlisted target has list "
    "length + 1 and is counted as censored."
)
_LENGTHS = (
    "hits: within K at any turn; final_recall: at the last; hits_auc: trapezoid over the turns that sessions "
    "of that length have (with one turn: hits)."
)


def by_turn(
    ranks: IntArray,
    list_lengths: IntArray,
    num_turns: IntArray,
    cutoffs: Sequence[int],
    random: Chance | None,
) -> Grouping:
    """Hits@K by turn, and Recall@K, mean and median rank at the turn itself.

    Hits@K(l) = (1/S) * sum_s [min_{l' <= min(l, L_s)} rank_{s,l'} <= K] over all S sessions;
    Recall@K(l) and the ranks are over the sessions with L_s >= l, which `sessions` counts.

    Args:
        ranks: best rank of a target at each turn, shape (n_sessions, max_turns).
        list_lengths: images in each ranking, same shape; where it is 0 (a ranking that is missing), the
            longest list's length is taken.
        num_turns: turns of each session, shape (n_sessions,).
        cutoffs: K.
        random: the random ranker, or None.
    """
    hits = {k: exact_means(hits_at_k.per_query(ranks, num_turns, k)) for k in cutoffs}
    chance_hits = {} if random is None else {k: exact_means(random.hits(k)) for k in cutoffs}
    chance_found = {} if random is None else {k: random.found(k) for k in cutoffs}
    runs = np.arange(ranks.shape[1]) < num_turns[:, None]
    longest = int(list_lengths[runs].max())
    groups = []
    for turn in range(1, ranks.shape[1] + 1):
        running = runs[:, turn - 1]
        n = int(running.sum())
        values: dict[str, float | None] = {}
        floors: dict[str, float | None] = {}
        for k in cutoffs:
            values[f"hits@{k}"] = float(hits[k][turn - 1])
            values[f"recall@{k}"] = _mean(recall_at_k.per_query(ranks[running, turn - 1], k))
            if random is not None:
                floors[f"hits@{k}"] = float(chance_hits[k][turn - 1])
                floors[f"recall@{k}"] = _mean(chance_found[k][running])
        values |= _ranks(ranks[running, turn - 1], list_lengths[running, turn - 1], longest)
        groups.append(Group(turn, str(turn), n, values, floors))
    return Grouping("By turn", "turn", "sessions", tuple(groups), notes=(_OVER_TURNS, _AT_TURN))


def by_length(
    ranks: IntArray, num_turns: IntArray, cutoffs: Sequence[int], random: Chance | None
) -> Grouping:
    """Hits@K, Final Recall@K and the area under Hits@K of the sessions of each length.

    Lengths go from the shortest to the longest; one that no session has is shown with no values.

    Args:
        ranks: best rank of a target at each turn, shape (n_sessions, max_turns).
        num_turns: turns of each session, shape (n_sessions,).
        cutoffs: K.
        random: the random ranker, or None.
    """
    groups = []
    for length in range(int(num_turns.min()), int(num_turns.max()) + 1):
        own = num_turns == length
        values: dict[str, float | None] = {}
        floors: dict[str, float | None] = {}
        for k in cutoffs:
            found = ranks[own, :length], num_turns[own], k
            values |= _length_values(hits_at_k.per_query(*found), final_recall.per_query(*found), k)
            if random is not None:
                floors |= _length_values(random.hits(k)[own, :length], random.found(k)[own], k)
        groups.append(Group(length, str(length), int(own.sum()), values, floors))
    return Grouping("By number of turns", "turns", "sessions", tuple(groups), notes=(_LENGTHS,))


def _length_values(hits: FloatArray, final: FloatArray, k: int) -> dict[str, float | None]:
    return {
        f"hits@{k}": _mean(hits[:, -1]),
        f"final_recall@{k}": _mean(final),
        f"hits_auc@{k}": _mean(area_under_hits(hits)),
    }


def _ranks(ranks: IntArray, list_lengths: IntArray, longest: int) -> dict[str, float | None]:
    if not len(ranks) or longest == 0:
        return {"mean_rank": None, "median_rank": None, "censored": None}
    shown, unlisted = censor(ranks, np.where(list_lengths == 0, longest, list_lengths))
    return {
        "mean_rank": mean_rank(shown),
        "median_rank": median_rank(shown),
        "censored": int(unlisted.sum()),
    }


def _mean(values: NDArray[np.float64]) -> float | None:
    return exact_mean(values) if len(values) else None
