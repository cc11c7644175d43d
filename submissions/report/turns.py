"""Numbers of sessions and dialogues by group: by turn, by round, by number of turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cir_metrics.catalogue import parse_metric
from cir_metrics.evaluation import censor
from cir_metrics.measures import (
    area_under_hits,
    final_recall,
    hits_at_k,
    mean_rank,
    median_rank,
    recall_at_k,
)
from cir_metrics.sums import FloatArray, IntArray, exact_mean, exact_means
from submissions.report.grouping import Chance, Group, Grouping, Values, grouped

if TYPE_CHECKING:
    from submissions.scoring.evidence import Evidence, Rounds

_OVER_TURNS = (
    "hits: a target within K at that turn or before, over all sessions; one that has ended keeps its value."
)
_AT_TURN = (
    "recall and ranks: at that turn itself, over the sessions that still run; an unlisted target has list "
    "length + 1 and is counted as censored."
)
_OF_TARGETS = (
    "turn_recall and ranks: of the turn's own target, over the sessions that still run; an unlisted target "
    "has list length + 1 and is counted as censored."
)
_PLAYED = (
    "sessions: those that play the round. One that has ended keeps its last rank and list, so that every "
    "number is over all sessions."
)
_AT_ROUND = "hits: a target within K in that round or before; recall, map and ranks: in that round itself."
_SHARES = (
    "solved, silent: ended so in that round or before. unlisted: the best target lies behind the list that "
    "the file holds, so that its rank is the file's word."
)
_LENGTHS = (
    "hits: a target within K at some turn.",
    "final_recall: a target within K at the last turn.",
    "hits_auc: the area under hits, over the turns that sessions of that length have (with one turn: hits).",
)


def session_groupings(
    evidence: Evidence, metrics: Iterable[str], random: Chance | None
) -> dict[str, Grouping]:
    """Numbers by turn and by length, at the cutoffs of the metrics; none where the ranks are not known.

    Args:
        evidence: of sessions.
        metrics: printed names; where none has a cutoff, K is 10.
        random: the random ranker, or None.
    """
    ranks, num_turns = evidence.ranks, evidence.num_turns
    if ranks is None or evidence.list_lengths is None or num_turns is None:
        return {}
    cutoffs = sorted({k for _, k in map(parse_metric, metrics) if k is not None}) or [10]
    if evidence.turn_ranks is not None:
        ranks = evidence.turn_ranks
        return {"by_turn": _of_targets(by_turn(ranks, evidence.list_lengths, num_turns, cutoffs, random))}
    return {
        "by_turn": by_turn(ranks, evidence.list_lengths, num_turns, cutoffs, random),
        "by_length": by_length(ranks, num_turns, cutoffs, random),
    }


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


def _of_targets(grouping: Grouping) -> Grouping:
    """The numbers by turn where each has a target of its own: hits would mix the targets of several turns."""

    def renamed(values: Values) -> Values:
        kept = {name: value for name, value in values.items() if not name.startswith("hits@")}
        return {name.replace("recall@", "turn_recall@"): value for name, value in kept.items()}

    groups = (
        replace(each, values=renamed(each.values), random=renamed(each.random)) for each in grouping.groups
    )
    return replace(grouping, groups=tuple(groups), notes=(_OF_TARGETS,))


def by_round(values: Mapping[str, FloatArray], ranks: IntArray, rounds: Rounds) -> Grouping:
    """The numbers of dialogues by round, with how many sessions have ended so far, and how.

    Args:
        values: by name `NAME@turnL` one value a session, shape (n_sessions,).
        ranks: best rank of a target in each round, shape (n_sessions, rounds).
        rounds: what stands beside these.
    """
    groups = []
    for number in range(1, rounds.last + 1):
        ending, column = f"@turn{number}", number - 1
        shown: dict[str, float | None] = {
            name.removesuffix(ending): exact_mean(each)
            for name, each in values.items()
            if name.endswith(ending)
        }
        shown["median_rank"] = median_rank(ranks[:, column])
        shown["solved"] = exact_mean((values[f"hits@{rounds.k}{ending}"] > 0).astype(float))
        shown["silent"] = exact_mean(rounds.silent[:, column].astype(float))
        shown["unlisted"] = exact_mean(rounds.unlisted[:, column].astype(float))
        groups.append(Group(number, str(number), int(rounds.played[:, column].sum()), shown, {}))
    notes = [_PLAYED, _AT_ROUND, _SHARES]
    if rounds.choices["after_success"] == "stop":
        notes.append(
            f"after_success=stop: a session stops at rank {rounds.k} and keeps its rank, for all cutoffs."
        )
    return Grouping("By round", "round", "sessions", tuple(groups), notes=tuple(notes))


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
    lengths = range(int(num_turns.min()), int(num_turns.max()) + 1)
    values: dict[str, FloatArray] = {}
    floors: dict[str, FloatArray] = {}
    for k in cutoffs:
        of = ranks, num_turns, k
        values |= _length_values(hits_at_k.per_query(*of), final_recall.per_query(*of), num_turns, k)
        if random is not None:
            floors |= _length_values(random.hits(k), random.found(k), num_turns, k)
    member = num_turns[:, None] == np.array(lengths)
    groups = grouped(values, floors, member, {length: str(length) for length in lengths})
    return Grouping("By number of turns", "turns", "sessions", groups, notes=_LENGTHS)


def _length_values(hits: FloatArray, final: FloatArray, num_turns: IntArray, k: int) -> dict[str, FloatArray]:
    """Of each session; a hit by its last turn is one at some turn."""
    areas = np.zeros(len(hits))
    for length in np.unique(num_turns).tolist():
        areas[num_turns == length] = area_under_hits(hits[num_turns == length, :length])
    return {f"hits@{k}": hits[:, -1], f"final_recall@{k}": final, f"hits_auc@{k}": areas}


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
