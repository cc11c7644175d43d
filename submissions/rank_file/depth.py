"""How many images a ranking must hold, may hold, and how many of them a board uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cir_metrics.catalogue import METRICS, parse_metric, reads_subset

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark

MAX_DEPTH = 1000
"""Images that a ranking may hold at most."""

SUBSET_DEPTH = 3
"""Images that a subset ranking holds at least (the largest K of the metrics of the subset)."""


@dataclass(frozen=True)
class Depth:
    """Lengths of one benchmark's rankings.

    Args:
        used: images that the board's metrics use.
        required: images that a ranking holds at least: `used`, or all there are where the gallery is smaller.
    """

    used: int
    required: int


def is_subset_metric(metric: str) -> bool:
    """Whether a metric is computed from the ranking of the query's own subset."""
    return reads_subset(metric)


def largest_cutoff(metrics: Iterable[str]) -> int:
    """The largest K of the metrics that read whole-gallery rankings.

    A metric without cutoff (`mean_rank`) reads what the others make a method hand in, so that nobody gains
    by shorter or longer lists; where no metric has a cutoff, up to 1,000 images are wanted.

    Example:
        >>> largest_cutoff(["recall@1", "recall@50", "recall_subset@3", "mean_rank"])
        50
    """
    parsed = (parse_metric(metric) for metric in metrics)
    cutoffs = [k for name, k in parsed if k is not None and not METRICS[name].reads_subset]
    return max(cutoffs, default=MAX_DEPTH)


def board_depth(benchmark: Benchmark) -> Depth:
    """The lengths that the benchmark's own board asks for."""
    used = min(largest_cutoff(benchmark.spec.metrics), MAX_DEPTH)
    if benchmark.gallery is None:
        return Depth(used, used)
    return Depth(used, min(used, len(benchmark.gallery) - (1 if benchmark.excludes_reference else 0)))


def needs_subset(benchmark: Benchmark) -> bool:
    """Whether the benchmark's board shows a metric of the query's own subset."""
    return any(is_subset_metric(metric) for metric in benchmark.spec.metrics)
