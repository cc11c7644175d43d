"""What is resampled behind a score: the values per query of each benchmark, and how they make up a number.

A number of one benchmark is the mean of its queries' values. A suite's is a weighted mean of its members'
means, so that every metric is sum_j w_j * (1/n_j) * sum_i v_ij with weights that add up to 1; the mean of
several metrics, as main metrics have it, is one more such number. Members are drawn apart from each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cir_datasets.registry.schema import main_metric_terms
from cir_datasets.registry.suites import known_as, member_shares
from cir_metrics.catalogue import NO_MEANS
from cir_metrics.errors import CallError
from cir_metrics.resampling import share_factors
from cir_metrics.significance import NEAR
from cir_metrics.sums import FloatArray, exact_means
from submissions.scoring.score_report import is_rank

if TYPE_CHECKING:
    from submissions.scoring.evidence import Evidence
    from submissions.scoring.score_report import ScoreReport


@dataclass(frozen=True)
class Sample:
    """Parts of a score that are resampled, a benchmark each.

    Args:
        of: id of the benchmark or suite.
        parts: the values per query of each benchmark, in the suite's order.
    """

    of: str
    parts: tuple[Evidence, ...]

    @classmethod
    def behind(cls, report: ScoreReport) -> Sample:
        """The sample that a score was computed from.

        Raises:
            CallError: the report does not hold the values per query.
        """
        parts = tuple(run.evidence for run in report.parts if run.evidence is not None)
        if len(parts) != len(report.parts):
            raise CallError(
                f"{report.file}: the report holds no values per query. Fix: take it from submissions.score."
            )
        return cls(report.benchmark, parts)

    @property
    def unit(self) -> str:
        """What is resampled: `queries` or `sessions`."""
        return "queries" if self.parts[0].num_turns is None else "sessions"

    @property
    def benchmarks(self) -> list[str]:
        """Ids of the parts."""
        return [part.benchmark.id for part in self.parts]

    def query_ids(self) -> list[tuple[str, str]]:
        """Benchmark and id of every query or session, part by part."""
        return [(part.benchmark.id, query) for part in self.parts for query in part.query_ids]

    def values(self, metric: str) -> list[FloatArray]:
        """Values a query of a metric, an array a part.

        Args:
            metric: a printed name, that with `@micro`, or `mean(a, b)`.
        """
        terms, parts = main_metric_terms(metric), [part.values for part in self.parts]
        return [exact_means([part[known_as(term, part)] for term in terms]) for part in parts]

    def joined(self, metric: str) -> FloatArray:
        """What each query adds to a number: the parts' values one behind the other.

        Those of part j are each times w_j * N / n_j, with w_j its share in the metric, n_j its queries and N
        those of all: so their mean is the number, and tests over them are tests of it.

        Args:
            metric: as for `values`.

        Returns:
            Shape (N,).
        """
        sizes = [len(part.query_ids) for part in self.parts]
        by_term = []
        for term in main_metric_terms(metric):
            factors = share_factors(member_shares(term, sizes), sizes)
            by_term.append(
                np.concatenate([each * part for each, part in zip(factors, self.values(term), strict=True)])
            )
        return exact_means(by_term)

    def weights(self, metric: str) -> FloatArray:
        """Share of each part in a metric: equal shares, or (`@micro`) by the number of queries.

        Returns:
            Shape (parts,), adding up to 1.
        """
        return np.array(member_shares(metric, [len(part.query_ids) for part in self.parts]))


def resampled_metrics(report: ScoreReport) -> list[str]:
    """Names of a report's numbers that are means over queries.

    Args:
        report: a score.

    Returns:
        The board's metrics, the main metric where it is a mean of several, and the further ones that were
        asked for.
    """
    names = [name for name in report.metrics if name not in NO_MEANS]
    if report.main is not None and report.main_metric not in names:
        names.append(report.main_metric)
    return [*names, *(name for name in report.extra if name.partition("@")[0] not in NO_MEANS)]


def is_better(metric: str, one: float, other: float) -> bool:
    """Whether one number of a metric is better than another: larger, but for ranks and counts smaller.

    Numbers that a rounding alone sets apart are equal.

    Example:
        >>> is_better("recall@5", 0.5, 0.25), is_better("mean_rank", 12.5, 4.0), is_better("censored", 1, 2)
        (True, False, True)
    """
    if math.isclose(one, other, rel_tol=NEAR):
        return False
    return one < other if is_rank(metric) else one > other
