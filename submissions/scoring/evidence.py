"""What a score's numbers were computed from, an entry a query: tables by group, intervals, comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from cir_metrics.coding import IntArray
    from cir_metrics.sums import FloatArray


@dataclass(frozen=True, eq=False)
class Evidence:
    """One rank file against one benchmark, in the benchmark's order of queries or sessions.

    Args:
        benchmark: the benchmark, with its rows.
        values: by printed metric name one value a query, shape (n,), where the metric has such a value.
        ranks: rank of the best target, `cir_metrics.UNLISTED` where none is listed: shape (n,), or
            (n, max_turns) for sessions, where what lies behind a session's last turn is not to be read. None
            where the file ranks subsets only.
        list_lengths: images in each ranking (after the cut to the board's depth), of the same shape.
        num_turns: turns of each session, shape (n,); None for queries.
        subset_ranks: rank of the target in its subset, shape (n,), or None.
        reference_ranked: how many lists hold their query's reference, and how many were looked at; None of
            sessions, of subsets, and where the protocol removes the reference.
    """

    benchmark: Benchmark
    values: dict[str, FloatArray]
    ranks: IntArray | None
    list_lengths: IntArray | None
    num_turns: IntArray | None
    subset_ranks: IntArray | None
    reference_ranked: tuple[int, int] | None = None

    @property
    def query_ids(self) -> list[str]:
        """Ids of the queries or sessions, in the order of the arrays."""
        return self.benchmark.query_ids
