"""The difference of two methods by one metric, and the queries on which it comes about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cir_metrics.significance import PValue
from submissions.scoring.intervals import Interval
from submissions.scoring.samples import is_better

_FIRST_FLIPS = 5
"""Ids of flipped queries that JSON shows in each direction; the file of flips has all."""


@dataclass(frozen=True)
class Difference:
    """One metric of one pair of methods: the first method's number minus the second's.

    Args:
        metric: its name.
        n: queries or sessions that were paired.
        difference: in the unit of the metric.
        interval: paired bootstrap interval of the difference, not corrected for the number of tests.
        test: the randomisation test.
        adjusted: its p-value after Holm's correction over all metrics and pairs of the comparison.
        significant: whether that is at most alpha.
        wins: queries on which the first method is better.
        ties: queries on which both have the same value.
        losses: queries on which the second is better.
    """

    metric: str
    n: int
    difference: float
    interval: Interval
    test: PValue
    adjusted: float
    significant: bool
    wins: int
    ties: int
    losses: int

    @property
    def first_is_better(self) -> bool:
        """Whether the first method's number is the better one, significantly or not."""
        return is_better(self.metric, self.difference, 0)

    def to_dict(self) -> dict[str, Any]:
        """The difference as JSON values."""
        return {
            "n": self.n,
            "difference": self.difference,
            "interval": list(self.interval.ends),
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
    """Queries that one of two methods hits and the other misses, by benchmark and id.

    Args:
        metric: a hit is a value above zero: a target within the metric's cutoff.
        hit_to_miss: those that the first method hits and the second misses.
        miss_to_hit: those that the first misses and the second hits.
    """

    metric: str
    hit_to_miss: tuple[tuple[str, str], ...]
    miss_to_hit: tuple[tuple[str, str], ...]

    @property
    def changes(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """Both directions by name."""
        return {"hit_to_miss": self.hit_to_miss, "miss_to_hit": self.miss_to_hit}

    def to_dict(self) -> dict[str, Any]:
        """Counts and the first ids as JSON values."""
        document: dict[str, Any] = {"metric": self.metric}
        for change, queries in self.changes.items():
            first = [{"benchmark": name, "id": query} for name, query in queries[:_FIRST_FLIPS]]
            document[change] = {"count": len(queries), "first": first}
        return document


@dataclass(frozen=True)
class Pair:
    """Two methods by name, the one that was named first in front.

    Args:
        differences: by metric name, first minus second.
        flips: one entry a cutoff of the leading metric.
    """

    first: str
    second: str
    differences: dict[str, Difference]
    flips: tuple[Flips, ...]
