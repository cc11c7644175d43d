"""Suites: several benchmarks and how their numbers are averaged, declared in `suites/*.yaml`."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from cir_datasets.common.yaml import read_model
from cir_datasets.errors import CardError
from cir_datasets.registry.cards import benchmark_ids, card
from cir_datasets.registry.schema import Count, MetricName, main_metric_terms
from cir_metrics.errors import UnknownNameError, did_you_mean

MICRO_SUFFIX = "@micro"
"""Ends the printed name of a metric that is averaged over queries, not over the members."""


class Suite(BaseModel):
    """Several benchmarks that are reported as one.

    `macro`, the suite's own number, is the mean of the members' values: each member weighs the same, however
    many queries it has. `micro` is that mean weighted by the members' numbers of queries: each query weighs
    the same. A macro mean is printed under the metric's name (`recall@10`), a micro mean under
    `recall@10@micro`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    version: Count
    """+1 whenever a published number of the suite can move."""
    title: str
    summary: str
    benchmarks: tuple[str, ...]
    metrics: tuple[MetricName, ...]
    averages: tuple[Literal["macro", "micro"], ...]
    """`macro` comes first; it is what the main metric is made of."""
    main_metric: str
    source: str
    note: str = ""
    """A sentence on what its source prints, where a reader would miss it."""

    @model_validator(mode="after")
    def _names_exist(self) -> Suite:
        unknown = [member for member in self.benchmarks if member not in benchmark_ids()]
        if unknown or not self.benchmarks:
            raise ValueError(f"no benchmark {unknown[0]!r}" if unknown else "a suite needs members")
        unlisted = [name for name in main_metric_terms(self.main_metric) if name not in self.metrics]
        if unlisted:
            raise ValueError(f"main_metric uses {unlisted[0]!r}, which `metrics` does not list")
        if self.averages not in (("macro",), ("macro", "micro")):
            raise ValueError(f"averages are [macro] or [macro, micro], not {list(self.averages)}")
        pooled = [name for name in self.metrics if not _is_mean(name)]
        if pooled and "micro" in self.averages:
            raise ValueError(f"{pooled[0]!r} is not a mean over queries, so it has no micro mean")
        return self

    @property
    def queries(self) -> int | None:
        """Queries or sessions of all members, by their cards; None where one is not known."""
        split = [member.partition("/") for member in self.benchmarks]
        counts = [card(name).configs[config].queries for name, _, config in split]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def mean(self, values: Mapping[str, Mapping[str, float]], queries: Mapping[str, int]) -> dict[str, float]:
        """The suite's numbers from its members'.

        macro = (1/M) * sum_m v_m,  micro = sum_m n_m * v_m / sum_m n_m.

        Args:
            values: by benchmark id the values by metric name.
            queries: by benchmark id the number of queries or sessions.

        Returns:
            By metric name the macro mean over all members, then (where the suite declares it) the micro mean
            as `<metric>@micro`.
        """
        return self._mean(self.metrics, values, queries)

    def mean_of(
        self, values: Mapping[str, Mapping[str, float]], queries: Mapping[str, int]
    ) -> dict[str, float]:
        """As `mean`, over the values that all members have, whether the suite lists them or not.

        Those that are not means over queries have no micro mean.
        """
        first = values[self.benchmarks[0]]
        return self._mean(
            [name for name in first if all(name in values[member] for member in self.benchmarks)],
            values,
            queries,
        )

    def _mean(
        self, names: Sequence[str], values: Mapping[str, Mapping[str, float]], queries: Mapping[str, int]
    ) -> dict[str, float]:
        found = {
            name: math.fsum(values[member][name] for member in self.benchmarks) / len(self.benchmarks)
            for name in names
        }
        if "micro" in self.averages:
            total = sum(queries[member] for member in self.benchmarks)
            for name in names:
                if _is_mean(name):
                    weighted = math.fsum(queries[member] * values[member][name] for member in self.benchmarks)
                    found[name + MICRO_SUFFIX] = weighted / total
        return found


def _is_mean(metric: str) -> bool:
    """Whether a metric is a mean over queries or sessions."""
    return metric not in ("median_rank", "censored") and not metric.startswith("hits_auc@")


@functools.cache
def _suites() -> dict[str, Suite]:
    found: dict[str, Suite] = {}
    folder = resources.files("cir_datasets") / "suites"
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".yaml"):
            text = entry.read_text(encoding="utf-8")
            suite = read_model(Suite, text, f"suites/{entry.name}", CardError)
            if suite.id in found:
                raise CardError(
                    f"suites/{entry.name}: there is another suite {suite.id!r}. Fix: name it anew."
                )
            found[suite.id] = suite
    return found


def suite_ids() -> tuple[str, ...]:
    """Ids of all suites.

    Example:
        >>> suite_ids()[:3]
        ('circled', 'fashioniq/val', 'fashioniq/val_union')
    """
    return tuple(_suites())


def suites_of(benchmarks: Iterable[str]) -> tuple[str, ...]:
    """Ids of the suites that have one of these benchmarks as a member.

    Example:
        >>> suites_of(["fashioniq/dress_val", "cirr/val"])
        ('fashioniq/val',)
    """
    wanted = set(benchmarks)
    return tuple(found.id for found in _suites().values() if wanted & set(found.benchmarks))


def suite(suite_id: str) -> Suite:
    """The suite of an id such as `fashioniq/val`.

    Raises:
        UnknownNameError: no suite has that id; the message names the nearest.

    Example:
        >>> suite("fashioniq/val").benchmarks[0]
        'fashioniq/dress_val'
    """
    if suite_id not in _suites():
        hint = did_you_mean(suite_id, suite_ids()) or f" There are {', '.join(suite_ids())}."
        raise UnknownNameError(f"no suite {suite_id!r}.{hint}")
    return _suites()[suite_id]
