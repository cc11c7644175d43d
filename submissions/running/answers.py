"""Rankings as they grow: one a query or one a turn, and those of subsets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cir_datasets.rows.benchmark import second_on_board
from submissions.rank_file.benchmarks import SUBSET_DEPTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cir_datasets.rows.benchmark import Benchmark


@dataclass
class Answers:
    """What a rank file holds beside its method.

    Args:
        rankings: by query the ranking, by session one a turn.
        subset_rankings: by query the ranking of its subset; None where the benchmark has none.
    """

    rankings: dict[str, list[Any]] = field(default_factory=dict)
    subset_rankings: dict[str, list[str]] | None = None

    @classmethod
    def of(cls, benchmark: Benchmark) -> Answers:
        """Empty answers to a benchmark."""
        return cls(subset_rankings=None if second_on_board(benchmark.spec) is None else {})

    def add(self, rows: Sequence[dict[str, Any]], ranked: Sequence[list[str]]) -> None:
        """Take in the rankings of rows: one each, of a session one a turn, one after the other."""
        start = 0
        for row in rows:
            if "session_id" in row:
                stop = start + len(row["turns"])
                self.rankings[row["session_id"]] = list(ranked[start:stop])
                start = stop
            else:
                self.rankings[row["query_id"]] = ranked[start]
                start += 1

    def cut(self, k: int) -> None:
        """Shorten rankings to k images and those of subsets to what is handed in, in place."""
        for own in self.rankings.values():
            for ranking in own if own and isinstance(own[0], list) else [own]:
                del ranking[k:]
        for ranking in (self.subset_rankings or {}).values():
            del ranking[SUBSET_DEPTH:]

    def add_subset(self, row: dict[str, Any], ranked: list[str]) -> None:
        """Take in the ranking of a query's subset."""
        if self.subset_rankings is not None:
            self.subset_rankings[row["query_id"]] = ranked
