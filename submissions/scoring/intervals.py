"""`intervals`: how far a score's numbers would move had other queries or sessions been drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_metrics.resampling import (
    DRAWS,
    LEVEL,
    SEED,
    bootstrap_medians,
    bootstrapped_means,
    percentile_interval,
)
from cir_metrics.sums import FloatArray
from submissions.scoring.samples import Sample, resampled_metrics
from submissions.scoring.score_report import shown_value

if TYPE_CHECKING:
    from submissions.scoring.score_report import ScoreReport

METHOD = "percentile bootstrap"


@dataclass(frozen=True)
class Interval:
    """A confidence interval.

    Args:
        low: its lower end, in the unit of the metric.
        high: its upper end.
    """

    low: float
    high: float

    @property
    def ends(self) -> tuple[float, float]:
        """Both."""
        return self.low, self.high

    def shown(self, metric: str) -> str:
        """The interval as tables show it, in per cent but for ranks.

        Example:
            >>> Interval(0.4312, 0.5).shown("recall@5"), Interval(3.5, 4.25).shown("mean_rank")
            ('[43.12, 50.00]', '[3.50, 4.25]')
        """
        return "[" + ", ".join(shown_value(metric, end).strip() for end in self.ends) + "]"


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals of a score's numbers, and how they were made.

    Args:
        values: by metric name; the main metric's name where that is a mean of several.
        unit: what was resampled: `queries` or `sessions`.
        draws: number of draws.
        seed: seed of the draws.
        level: share of the draws that an interval holds.
    """

    values: dict[str, Interval]
    unit: str
    draws: int
    seed: int
    level: float

    def ends(self, metric: str) -> tuple[float | None, float | None]:
        """Both ends of a metric's interval; None where it has none."""
        return self.values[metric].ends if metric in self.values else (None, None)

    def to_dict(self) -> dict[str, Any]:
        """The intervals as JSON values; ends are fractions, those of ranks are ranks."""
        return {
            "method": METHOD,
            "resampled": self.unit,
            "draws": self.draws,
            "seed": self.seed,
            "level": self.level,
            "metrics": {name: [each.low, each.high] for name, each in self.values.items()},
        }

    def note(self) -> str:
        """How they were made, in a sentence.

        Example:
            >>> Intervals({}, "queries", 10_000, 1, 0.95).note()
            'Intervals: 95 % percentile bootstrap over queries, 10,000 draws, seed 1.'
        """
        return (
            f"Intervals: {100 * self.level:g} % {METHOD} over {self.unit}, {self.draws:,} draws, "
            f"seed {self.seed}."
        )


def intervals(
    report: ScoreReport, *, draws: int = DRAWS, seed: int = SEED, level: float = LEVEL
) -> Intervals:
    """Bootstrap confidence intervals of the numbers of a score.

    Queries or sessions are drawn with replacement, never turns, and each number is computed anew. A suite's
    members are drawn apart from each other; its macro and micro means are taken within each draw, and so is
    a main metric that is the mean of several. The further metrics of the card and those that were asked for
    have intervals, too. For hits_auc, L_max stays the whole benchmark's. `censored` is
    a count and has no interval.

    Args:
        report: what `submissions.score` returned.
        draws: number of draws, 1 or more.
        seed: 0 or more.
        level: share of the draws that an interval holds, above 0 and below 1.

    Returns:
        The intervals: the percentiles (1 - level) / 2 and (1 + level) / 2 of the draws.

    Raises:
        CallError: the report does not hold the values per query.
        InputError: draws, seed or level are out of range.

    Example:
        >>> from submissions import make_rank_file, score
        >>> found = intervals(score(make_rank_file("shapes/val", "random")), draws=1000)
        >>> found.note()
        'Intervals: 95 % percentile bootstrap over queries, 1,000 draws, seed 2026.'
    """
    sample = Sample.behind(report)
    by_name = {name: sample.values(name) for name in resampled_metrics(report)}
    numbers = {**report.metrics, **report.extra}
    if not report.runs:
        by_name |= {name: [values] for name, values in sample.parts[0].card_values(numbers)[0].items()}
    names, by_metric = list(by_name), list(by_name.values())
    columns = [np.stack([values[part] for values in by_metric], 1) for part in range(len(sample.parts))]
    weights = np.stack([sample.weights(name) for name in names], 1)
    drawn = bootstrapped_means(sample.benchmarks, columns, weights, draws=draws, seed=seed)
    low, high = percentile_interval(drawn, level)
    found = {name: Interval(*ends) for name, *ends in zip(names, low.tolist(), high.tolist(), strict=True)}
    if "median_rank" in numbers:
        ends = percentile_interval(_medians(sample, draws, seed), level)
        found["median_rank"] = Interval(float(ends[0]), float(ends[1]))
    order = [*report.metrics, *report.extra, *names]
    return Intervals(
        values={name: found[name] for name in dict.fromkeys(order) if name in found},
        unit=sample.unit,
        draws=draws,
        seed=seed,
        level=level,
    )


def _medians(sample: Sample, draws: int, seed: int) -> FloatArray:
    """The median of the ranks that `mean_rank` is the mean of, in each draw; over a suite, their mean."""
    total = np.zeros(draws)
    for part, share in zip(sample.parts, sample.weights("median_rank"), strict=True):
        ranks = part.values["mean_rank"]
        total += share * bootstrap_medians(ranks, draws=draws, seed=seed, key=part.benchmark.id)
    return total
