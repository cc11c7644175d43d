"""Suites: several benchmarks and how their numbers are averaged, declared in `suites/*.yaml`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from cir_datasets.common.yaml import read_model
from cir_datasets.errors import CardError
from cir_datasets.registry.averages import MICRO_SUFFIX, mean_over_members, member_metric
from cir_datasets.registry.cards import benchmark_ids, card
from cir_datasets.registry.schema import Count, MetricName, main_metric_terms
from cir_metrics.errors import UnknownNameError, did_you_mean


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

    @property
    def numbers(self) -> tuple[str, ...]:
        """Printed names of its own numbers: the macro means, then the micro means where it has them."""
        micro = [name + MICRO_SUFFIX for name in self.metrics] if "micro" in self.averages else []
        return (*self.metrics, *micro)

    def member(self, name: object) -> str | None:
        """The member that a name means: its id, its configuration, or how that begins where only one does.

        Example:
            >>> suite("fashioniq/val").member("dress")
            'fashioniq/dress_val'
            >>> suite("fisd").member("change"), suite("fisd").member("c")
            ('fisd/change', None)
        """
        by_config = {member.partition("/")[2]: member for member in self.benchmarks}
        exact = [member for config, member in by_config.items() if name in (member, config)]
        begun = [member for config, member in by_config.items() if config.startswith(f"{name}_")]
        meant = exact or begun
        return meant[0] if len(meant) == 1 else None

    def fit(self, answered: Sequence[object]) -> list[Misfit]:
        """What keeps rank files from making up the suite; nothing where there is one for each member.

        Args:
            answered: the benchmark that each file answers.

        Returns:
            In this order: files that name none, then benchmarks that are answered twice or are no members.
            Where these fit, the members that no file answers.

        Example:
            >>> [(misfit.cause, misfit.name) for misfit in suite("fisd").fit(["fisd/change", "cirr/val"])]
            [('alien', 'cirr/val')]
        """
        misfits = [
            Misfit("nameless", name, place)
            for place, name in enumerate(answered)
            if not isinstance(name, str)
        ]
        for name in dict.fromkeys(name for name in answered if isinstance(name, str)):
            if answered.count(name) > 1:
                misfits.append(Misfit("twice", name, answered.count(name)))
            if name not in self.benchmarks:
                misfits.append(Misfit("alien", name))
        return misfits or [Misfit("missing", name) for name in self.benchmarks if name not in answered]

    def reduce(
        self,
        values: Sequence[Mapping[str, float | None]],
        queries: Sequence[int],
        *,
        metrics: Sequence[str] | None = None,
        averages: Sequence[str] | None = None,
    ) -> dict[str, float]:
        """The suite's numbers from its members'.

        Args:
            values: of each member, in the suite's order, the values by metric name.
            queries: of each member the number of queries or sessions.
            metrics: what is averaged; None: all that is known of every member.
            averages: `macro`, or `macro` and `micro`; None: those that the suite declares.

        Returns:
            By metric name the macro mean over all members, then the micro mean as `<metric>@micro`; what is
            not a mean over queries has none.

        Example:
            >>> of_three = [{"recall@10": 0.2}, {"recall@10": 0.3}, {"recall@10": 0.8}]
            >>> suite("fashioniq/val").reduce(of_three, [10, 30, 60])["recall@10@micro"]
            0.59
        """
        known = [{name: value for name, value in own.items() if value is not None} for own in values]
        names = metrics or [name for name in known[0] if all(name in own for own in known)]
        micro = [name + MICRO_SUFFIX for name in names if _is_mean(name)]
        printed = [*names, *(micro if "micro" in (averages or self.averages) else ())]
        return {
            name: mean_over_members(name, [own[member_metric(name)] for own in known], queries)
            for name in printed
        }


@dataclass(frozen=True)
class Misfit:
    """Why rank files do not make up a suite.

    Args:
        cause: `nameless`, `twice`, `alien` (of no member) or `missing`.
        name: the benchmark's id, or what stands in its place.
        number: of `nameless` the file's place, of `twice` how many files answer it.
    """

    cause: Literal["nameless", "twice", "alien", "missing"]
    name: object
    number: int = 0


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


def find_suite(suite_id: str) -> Suite | None:
    """The suite of that id, or None."""
    return _suites().get(suite_id)


def members_of(benchmark_id: str) -> tuple[str, ...]:
    """The benchmarks that an id stands for: a suite's members, else itself.

    Example:
        >>> members_of("fashioniq/val")
        ('fashioniq/dress_val', 'fashioniq/shirt_val', 'fashioniq/toptee_val')
        >>> members_of("cirr/val")
        ('cirr/val',)
    """
    declared = find_suite(benchmark_id)
    return (benchmark_id,) if declared is None else declared.benchmarks
