"""Numbers of dialogues round by round (FISD, section 4.1 and supplement D), and what stands beside them.

Round l of a dialogue is turn l of the metrics of sessions. A session that has ended keeps its last rank and
list in the rounds that it does not play, so that every round is over all sessions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cir_datasets.common.terminal import counted
from cir_metrics.evaluation import CodedSessions, Results, evaluate_coded, mark_ids
from cir_metrics.measures import map_at_k, mean_rank, recall_at_k
from cir_metrics.sums import BoolArray, FloatArray, exact_mean

CUTOFFS = (1, 5, 10, 50)
"""Cutoffs of Hits and Recall; that of the dialogue comes beside them."""
MAP = 5
"""Cutoff of mAP, where queries have several targets (CIRCO's)."""
_REASONS = 5
"""Reasons of silence that are listed."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """What dialogues have beside the ranks of their sessions.

    Args:
        played: which session plays which round, shape (sessions, rounds).
        silent: which session has ended without words in which round or before, same shape.
        unlisted: whose targets lie behind the list in which round, same shape.
        silences: how many sessions of the file a silent user ended, by the reason in its words.
        choices: the settings of the dialogue by name.
        unusual: names of those that are not as they are by themselves.
        user: who spoke, and by which prompts, in one line.
    """

    played: BoolArray
    silent: BoolArray
    unlisted: BoolArray
    silences: Mapping[str, int]
    choices: Mapping[str, Any]
    unusual: frozenset[str]
    user: str

    @property
    def k(self) -> int:
        """The cutoff within which a session is solved."""
        return int(self.choices["k"])

    @property
    def last(self) -> int:
        """How many rounds a session has at most."""
        return int(self.played.shape[1])

    def silence_note(self) -> str:
        """How many sessions a silent user ended, and why, in a sentence."""
        if not self.silences:
            return "No session ended since the user was silent."
        listed = [f"{reason} ({n:,})" for reason, n in list(self.silences.items())[:_REASONS]]
        left = len(self.silences) - _REASONS
        more = f", and {left:,} more reasons" if left > 0 else ""
        total = counted(sum(self.silences.values()), "session")
        return f"{total} ended unsolved since the user was silent: {'; '.join(listed)}{more}."


def round_metrics(k: int, rounds: int, *, several_targets: bool) -> list[str]:
    """Names of the numbers of dialogues.

    Args:
        k: cutoff within which a session is solved.
        rounds: rounds of a session at most.
        several_targets: whether some session has more than one target.

    Example:
        >>> names = round_metrics(1, 2, several_targets=False)
        >>> names[:3], names[-1]
        (['hits@1@turn1', 'hits@1@turn2', 'hits@5@turn1'], 'mean_rank@turn2')
    """
    numbers = range(1, rounds + 1)
    names = [f"hits@{cutoff}@turn{number}" for cutoff in _cutoffs(k) for number in numbers]
    names.append(f"hits_auc@{k}")
    names += [f"recall@{cutoff}@turn{number}" for cutoff in _cutoffs(k) for number in numbers]
    names += [f"map@{MAP}@turn{number}" for number in numbers if several_targets]
    return [*names, *(f"mean_rank@turn{number}" for number in numbers)]


def _cutoffs(k: int) -> list[int]:
    return sorted({*CUTOFFS, k})


def evaluate_rounds(
    k: int,
    coded: CodedSessions,
    lists: Sequence[Sequence[Sequence[str]]],
    targets: Sequence[Sequence[str]],
) -> Results:
    """Numbers of dialogues, by the functions that every metric of the suite has.

    Args:
        k: cutoff within which a session is solved.
        coded: ranks in every round, of sessions that have ended, too.
        lists: the images of each session's rounds.
        targets: of each session.
    """
    rounds = coded.ranks.shape[1]
    wanted: list[tuple[str, int | None]] = [("hits_at_k", cutoff) for cutoff in _cutoffs(k)]
    results = evaluate_coded([*wanted, ("hits_auc", k)], coded)
    values: dict[str, FloatArray] = dict(results.per_query)
    several = any(len(each) > 1 for each in targets)
    counts = np.array([len(each) for each in targets], dtype=np.int64)
    for number in range(rounds):
        ranks, turn = coded.ranks[:, number], f"@turn{number + 1}"
        for cutoff in _cutoffs(k):
            values[f"recall@{cutoff}{turn}"] = recall_at_k.per_query(ranks, cutoff)
        values[f"mean_rank{turn}"] = mean_rank.per_query(ranks)
        if several:
            [positive] = mark_ids([session[number] for session in lists], [targets], MAP)
            values[f"map@{MAP}{turn}"] = map_at_k.per_query(positive, counts, MAP)
    columns = {name: values[name] for name in round_metrics(k, rounds, several_targets=several)}
    means = {name: exact_mean(column) for name, column in columns.items()}
    return dataclasses.replace(results, values=means, per_query=columns)
