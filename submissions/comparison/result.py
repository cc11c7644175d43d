"""What a comparison found, as values: methods, differences of pairs, flips; and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cir_datasets.common.tables import Table, check_format, render
from cir_metrics.significance import PValue
from submissions.scoring.intervals import METHOD, Interval

ALPHA = 0.05
"""Level of significance where the caller names none."""
FIRST_FLIPS = 5
"""Ids of flipped queries that JSON shows in each direction; the file of flips has all."""


@dataclass(frozen=True)
class ComparedMethod:
    """One of the methods.

    Args:
        name: its name, with the file's where another method has the same.
        file: the file's name.
        letter: what stands for it in superscripts: `a` for the first file, and so on.
        group: its rank group by the leading metric, from 1.
        values: by metric name the numbers, fractions (`mean_rank`: a rank).
        beats: by metric name the letters of the methods that it is significantly better than.
    """

    name: str
    file: str
    letter: str
    group: int
    values: dict[str, float]
    beats: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Difference:
    """One metric of one pair of methods: the first method's number minus the second's.

    Args:
        metric: its name.
        difference: in the unit of the metric.
        interval: paired bootstrap interval of the difference, not corrected for the number of tests.
        test: the randomisation test.
        adjusted: its p-value after Holm's correction over the whole comparison.
        significant: whether that is at most alpha.
        wins: queries on which the first method is better.
        ties: queries on which both have the same value.
        losses: queries on which the second is better.
    """

    metric: str
    difference: float
    interval: Interval
    test: PValue
    adjusted: float
    significant: bool
    wins: int
    ties: int
    losses: int

    def to_dict(self) -> dict[str, Any]:
        """The difference as JSON values."""
        return {
            "difference": self.difference,
            "interval": [self.interval.low, self.interval.high],
            "p": self.test.p,
            "test": self.test.test,
            "p_holm": self.adjusted,
            "significant": self.significant,
            "wins": self.wins,
            "ties": self.ties,
            "losses": self.losses,
        }


@dataclass(frozen=True)
class Flips:
    """Queries that one of two methods hits and the other misses, by one metric.

    Args:
        metric: a hit is a value above zero: a target within the metric's cutoff.
        hit_to_miss: benchmark and id of the queries that the first method hits and the second misses.
        miss_to_hit: those that the first misses and the second hits.
    """

    metric: str
    hit_to_miss: tuple[tuple[str, str], ...]
    miss_to_hit: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Counts and the first ids as JSON values."""
        return {
            "metric": self.metric,
            **{
                name: {
                    "count": len(queries),
                    "first": [{"benchmark": each, "id": query} for each, query in queries[:FIRST_FLIPS]],
                }
                for name, queries in (("hit_to_miss", self.hit_to_miss), ("miss_to_hit", self.miss_to_hit))
            },
        }


@dataclass(frozen=True)
class Pair:
    """Two methods, the one that was named first in front.

    Args:
        first: name of the one.
        second: name of the other.
        differences: by metric name, first minus second.
        flips: one entry a cutoff of the leading metric.
    """

    first: str
    second: str
    differences: dict[str, Difference]
    flips: tuple[Flips, ...]


@dataclass(frozen=True)
class Comparison:
    """Methods side by side on one benchmark or suite.

    Args:
        benchmark: id of the benchmark or suite.
        benchmark_version: its version.
        unit: what was resampled: `queries` or `sessions`.
        n: their number.
        leading: the metric that groups and flips are made by: the main metric where it is compared.
        metrics: names of what is compared.
        methods: in the order of the files.
        pairs: each method with each later one.
        signatures: by metric name the printed signature; a mean of several has none of its own.
        draws: draws of the bootstrap, and changes of sign of tests that are not exact.
        seed: their seed.
        alpha: level of significance; intervals hold 1 - alpha.
        notes: what a reader must know beside.
    """

    benchmark: str
    benchmark_version: int
    unit: str
    n: int
    leading: str
    metrics: tuple[str, ...]
    methods: tuple[ComparedMethod, ...]
    pairs: tuple[Pair, ...]
    signatures: dict[str, str]
    draws: int
    seed: int
    alpha: float = ALPHA
    notes: tuple[str, ...] = ()

    @property
    def tests(self) -> int:
        """Size of the family that Holm's correction covers: metrics times pairs."""
        return len(self.metrics) * len(self.pairs)

    @property
    def family(self) -> str:
        """That family in words, such as `4 metrics x 3 pairs`."""
        counts = ((len(self.metrics), "metric"), (len(self.pairs), "pair"))
        return " x ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON values; numbers are fractions, those of ranks are ranks."""
        return {
            "benchmark": self.benchmark,
            "benchmark_version": self.benchmark_version,
            self.unit: self.n,
            "leading_metric": self.leading,
            "interval": {
                "method": f"paired {METHOD}",
                "resampled": self.unit,
                "draws": self.draws,
                "seed": self.seed,
                "level": 1 - self.alpha,
            },
            "test": {
                "method": "paired randomisation, two-sided",
                "draws": self.draws,
                "seed": self.seed,
                "correction": "Holm",
                "family": self.family,
                "tests": self.tests,
                "alpha": self.alpha,
            },
            "methods": [
                {
                    "name": method.name,
                    "file": method.file,
                    "letter": method.letter,
                    "group": method.group,
                    "metrics": method.values,
                    "beats": {metric: list(letters) for metric, letters in method.beats.items()},
                }
                for method in self.methods
            ],
            "pairs": [
                {
                    "first": pair.first,
                    "second": pair.second,
                    "metrics": {name: each.to_dict() for name, each in pair.differences.items()},
                    "flips": [flips.to_dict() for flips in pair.flips],
                }
                for pair in self.pairs
            ],
            "signatures": self.signatures,
            "notes": list(self.notes),
        }

    def flipped(self) -> Iterator[dict[str, str]]:
        """Every flip: metric, benchmark, id, both methods, and `change` from the first to the second."""
        for pair in self.pairs:
            for flips in pair.flips:
                for change, queries in (
                    ("hit to miss", flips.hit_to_miss),
                    ("miss to hit", flips.miss_to_hit),
                ):
                    for benchmark, query in queries:
                        yield {
                            "metric": flips.metric,
                            "benchmark": benchmark,
                            "id": query,
                            "first": pair.first,
                            "second": pair.second,
                            "change": change,
                        }

    def tables(self) -> tuple[Table, ...]:
        """The scores with superscripts, one table a pair, and the flips."""
        from submissions.comparison.layout import comparison_tables

        return comparison_tables(self)

    def text(self, format: str = "table") -> str:
        """The comparison in one of the formats of `cir_datasets.common.tables`.

        Raises:
            UnknownNameError: there is no such format.
        """
        import json

        check_format(format)
        if format == "json":
            return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)
        return render(self.tables(), format)
