"""What a method answers to a benchmark, ranking by ranking, until it is a rank file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cir_datasets.rows.benchmark import second_on_board
from submissions.rank_file.model import RankFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.model import Method


@dataclass
class Answers:
    """What a rank file holds beside its method.

    Args:
        benchmark: what is answered.
        rankings: by query the ranking, by session one a turn.
        second: by query the second ranking, over its own list; empty where the board asks for none.
    """

    benchmark: Benchmark
    rankings: dict[str, list[Any]] = field(default_factory=dict)
    second: dict[str, list[str]] = field(default_factory=dict)

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

    def rank_file(self, method: Method) -> RankFile:
        """The rank file of a method that answers so."""
        asked = second_on_board(self.benchmark.spec) is not None
        return RankFile(
            benchmark=self.benchmark.id,
            benchmark_version=self.benchmark.version,
            method=method,
            rankings=self.rankings,
            subset_rankings=self.second if asked else None,
        )


def declaring_reference(method: Method, benchmark: Benchmark) -> Method:
    """The method block with what ranking the gallery by our functions makes of the reference image.

    Args:
        method: who answers; what it declares itself stays.
        benchmark: what is ranked; where no reference is in the gallery there is nothing to declare.
    """
    use = benchmark.reference_use
    if method.reference or use in ("outside", "none"):
        return method
    return method.model_copy(update={"reference": use})
