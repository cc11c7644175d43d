"""Numbers by group: a group is an aspect, a turn, or a length of session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.rows import list_lengths, numbers
from cir_metrics.evaluation import censor
from cir_metrics.measures import (
    area_under_hits,
    final_recall,
    hits_at_k,
    mean_rank,
    median_rank,
    recall_at_k,
)
from cir_metrics.sums import FloatArray, IntArray, exact_mean, exact_means, exact_sums

if TYPE_CHECKING:
    from submissions.report.floors import Chance
    from submissions.scoring.rounds import Rounds
    from submissions.scoring.score_report import Evidence

Values = Mapping[str, float | None]

_OVER_TURNS = (
    "hits: a target within K at that turn or before, over all sessions; one that has ended keeps its value."
)
_AT_TURN = (
    "recall and ranks: at that turn itself, over the sessions that still run; an unlisted target has list "
    "length + 1 and is counted as censored."
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


@dataclass(frozen=True)
class Group:
    """One group's numbers.

    Args:
        key: the aspect, the turn or the number of turns; `macro` or `micro` for a mean.
        name: how a table calls it.
        n: queries or sessions in it.
        values: by name a fraction, a rank or a count; None where the group holds no query.
        random: what a random order is expected to get, for the names where that is known.
    """

    key: str | int
    name: str
    n: int
    values: Values
    random: Values

    def to_dict(self, head: str, counted: str) -> dict[str, Any]:
        """The group as JSON values: its key under the name `head`, n under `counted`."""
        return {
            head: self.key,
            "name": self.name,
            counted: self.n,
            **self.values,
            "random": dict(self.random),
        }


@dataclass(frozen=True)
class Grouping:
    """All groups of one kind.

    Args:
        title: what the table shows.
        head: the head of its first column, `aspect`, `turn` or `turns`.
        counted: `queries` or `sessions`.
        groups: in the order of the rows.
        means: macro and micro mean, where they mean something.
        notes: sentences below the table.
    """

    title: str
    head: str
    counted: str
    groups: tuple[Group, ...]
    means: tuple[Group, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> list[dict[str, Any]]:
        """The groups as JSON values, the means behind them."""
        return [group.to_dict(self.head, self.counted) for group in (*self.groups, *self.means)]


def by_aspect(
    evidence: Evidence, values: Mapping[str, FloatArray], names: Mapping[str, str], random: Chance | None
) -> Grouping:
    """Metrics over the queries of each aspect; a query with several aspects counts in each.

    A metric is the mean of its values per query; median_rank is the median of ranks, and censored a count.
    macro: (1/A) * sum_a m_a over the A aspects that have queries. micro: the metric over all queries that
    have an aspect, each counted once.

    Args:
        evidence: the values per query.
        values: by metric one value per query, shape (n,): of median_rank the ranks, of censored 1 or 0.
        names: how the aspects are called, in the order of the rows; others follow under their own name.
        random: the random ranker, or None.
    """
    codes, seen, lengths = _coded_aspects(evidence)
    order = [*names, *sorted(set(seen) - names.keys())]
    place = {aspect: number for number, aspect in enumerate(order)}
    member = np.zeros((len(lengths), len(order)), dtype=np.bool_)
    places = np.array([place[aspect] for aspect in seen], dtype=np.int64)
    member[np.repeat(np.arange(len(lengths)), lengths), places[codes]] = True
    expected = {metric: each for metric in values if (each := _expected(random, metric)) is not None}
    found, floors = _by_group(values, member), _by_group(expected, member)
    groups = tuple(
        Group(
            aspect,
            names.get(aspect, aspect),
            int(member[:, number].sum()),
            {metric: each[number] for metric, each in found.items()},
            {metric: each[number] for metric, each in floors.items()},
        )
        for number, aspect in enumerate(order)
    )
    some: NDArray[np.bool_] = lengths > 0
    n = int(some.sum())
    means = (
        Group("macro", "macro mean", n, _macro(found), _macro(floors)),
        Group("micro", "micro mean", n, _micro(values, some), _micro(expected, some)),
    )
    gone = [names.get(aspect, aspect) for aspect, held in zip(order, member.T, strict=True) if not held.any()]
    over = f"{len(order) - len(gone)} of {len(order)} aspects" if gone else "the aspects"
    notes = [f"macro: the mean over {over}; micro: the mean over the queries that have an aspect."]
    if gone:
        notes.append(f"No query is of {', '.join(gone)}, which the card names.")
    if (lengths > 1).any():
        notes.append("A query with several aspects counts in each of them.")
    without = len(lengths) - n
    if without:
        notes.append(f"{without:,} {'query has' if without == 1 else 'queries have'} no aspect.")
    return Grouping("By aspect", "aspect", "queries", groups, means, tuple(notes))


def _coded_aspects(evidence: Evidence) -> tuple[NDArray[np.int64], list[str], NDArray[np.int64]]:
    """All queries' aspects one after the other as places in a list, the list, how many each query has."""
    import pyarrow.compute as pc

    column = evidence.benchmark.table.column("aspects")
    coded = pc.list_flatten(column).combine_chunks().dictionary_encode()
    return numbers(coded.indices).astype(np.int64), coded.dictionary.to_pylist(), list_lengths(column)


def _expected(random: Chance | None, metric: str) -> FloatArray | None:
    name, _, variant = metric.partition(":")
    return None if random is None else random.values(name, variant or "equation")


def _by_group(values: Mapping[str, FloatArray], member: NDArray[np.bool_]) -> dict[str, list[float | None]]:
    """By metric the number of each group, None where a group holds no query."""
    return {
        metric: [_number(metric, each[own]) if own.any() else None for own in member.T]
        for metric, each in values.items()
    }


def _number(metric: str, values: FloatArray) -> float:
    """The mean; of ranks the median; or how many targets are not listed, a whole number but if expected."""
    if metric == "median_rank":
        return float(np.median(values))
    if metric != "censored":
        return exact_mean(values)
    return exact_sums(values).item() if values.dtype.kind == "f" else values.sum().item()


def _macro(means: Mapping[str, list[float | None]]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for metric, each in means.items():
        known = [value for value in each if value is not None]
        found[metric] = exact_mean(known) if known else None
    return found


def _micro(values: Mapping[str, FloatArray], some: NDArray[np.bool_]) -> dict[str, float | None]:
    if not some.any():
        return dict.fromkeys(values)
    return {metric: _number(metric, each[some]) for metric, each in values.items()}


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
    return Grouping("By number of turns", "turns", "sessions", tuple(groups), notes=_LENGTHS)


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
