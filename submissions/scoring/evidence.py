"""The values per query behind a score, from which everything else is computed that is said of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cir_datasets.common.terminal import counted
from cir_datasets.rows import list_lengths
from cir_metrics.catalogue import METRICS, parse_metric
from cir_metrics.measures import map_subset, recall_at_k, recall_subset
from submissions.rank_file.benchmarks import SUBSET_DEPTH, board_depth

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from cir_metrics.sums import BoolArray, FloatArray, IntArray

RANKED = ("ranks", "list_lengths", "num_turns", "subset_ranks", "turn_ranks")
"""Fields of `Evidence` that hold what the rankings say, beside the values of the metrics."""

_REASONS = 5
"""Reasons of silence that are listed."""

# Of one target, map_subset is the mAP, whatever was ranked.
_OF_RANKS = {
    "recall_at_k": recall_at_k,
    "map_at_k": map_subset,
    "recall_subset": recall_subset,
    "map_subset": map_subset,
}
"""Metrics that the rank of the only target gives."""


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


@dataclass(frozen=True, eq=False)
class Evidence:
    """One rank file against one benchmark, in the benchmark's order of queries or sessions.

    Args:
        benchmark: the benchmark, with its rows.
        values: by printed metric name one value per query, shape (n,), where the metric has such a value.
        ranks: rank of the best target, `cir_metrics.UNLISTED` where none is listed: shape (n,), or
            (n, max_turns) for sessions, where what lies behind a session's last turn is not to be read. None
            where the file ranks subsets only.
        list_lengths: images in each ranking (after the cut to the board's depth), of the same shape.
        num_turns: turns of each session, shape (n,); None for queries.
        subset_ranks: rank of the target in its subset, shape (n,), or None.
        turn_ranks: rank of each turn's own target, shape (n, max_turns); None where turns have none.
        sessions: ids of a dialogue's sessions, which need not be all of the benchmark's queries; else None.
        rounds: what stands beside a dialogue's ranks: rounds, ends, user; else None.
        reach: images of the shortest ranking, where lists were repaired; None: as deep as the board asks.
    """

    benchmark: Benchmark
    values: dict[str, FloatArray]
    ranks: IntArray | None
    list_lengths: IntArray | None
    num_turns: IntArray | None
    subset_ranks: IntArray | None
    turn_ranks: IntArray | None = None
    sessions: tuple[str, ...] | None = None
    rounds: Rounds | None = None
    reach: int | None = None

    @property
    def query_ids(self) -> list[str]:
        """Ids of the queries or sessions, in the order of the arrays."""
        return self.benchmark.query_ids if self.sessions is None else list(self.sessions)

    def card_values(self, shown: Collection[str]) -> tuple[dict[str, FloatArray], list[str]]:
        """Values a query of the further metrics that the benchmark's card names.

        Args:
            shown: names of metrics that the score has anyway, which are left out.

        Returns:
            By name the values, shape (n,), and the names of those that the rank file does not give.
        """
        listed = () if self.num_turns is not None else self.benchmark.spec.card.report.metrics
        found = {name: self._query_values(name) for name in dict.fromkeys(listed) if name not in shown}
        known = {name: values for name, values in found.items() if values is not None}
        return known, [name for name in found if name not in known]

    def _query_values(self, metric: str) -> FloatArray | None:
        """One value per query of a metric of queries, shape (n,), or None where the rank file gives none.

        Beside what was computed already, ranks give recall@K and map@K where every query has one positive
        (AP@K is then 1/rank up to rank K), and recall_subset@K and map_subset@K from the second lists' ranks.
        """
        if metric in self.values:
            return self.values[metric]
        name, k = parse_metric(metric)
        if k is None or name not in _OF_RANKS:
            return None
        if METRICS[name].reads_subset:
            ranks, deepest = self.subset_ranks, SUBSET_DEPTH
        else:
            several = (list_lengths(self.benchmark.ids("positive_image_ids")) != 1).any()
            ranks = None if several else self.ranks
            deepest = board_depth(self.benchmark).used if self.reach is None else self.reach
        return None if ranks is None or k > deepest else _OF_RANKS[name].per_query(ranks, k)
