"""Suites: several benchmarks, how their numbers are averaged, and what the signature of such a number says.

A macro mean weighs each member the same, a micro mean each query; the printed name of a number says which it
is. Which benchmarks there are is not known here: `registry` names a suite's.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import combinations
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cir_datasets.common.yaml import read_model
from cir_datasets.errors import CardError
from cir_datasets.registry.schema import (
    MICRO_SUFFIX,
    Count,
    MetricName,
    is_micro,
    main_metric_terms,
    member_metric,
)
from cir_metrics.catalogue import NO_MEANS, Signature
from cir_metrics.errors import InputError, UnknownNameError

_SHORT = 7
"""Characters of a hash in the printed form, as in `Signature`."""


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
    benchmarks: Annotated[tuple[str, ...], Field(min_length=1)]
    metrics: tuple[MetricName, ...]
    averages: tuple[Literal["macro", "micro"], ...]
    """`macro` comes first; it is what the main metric is made of."""
    main_metric: str
    source: str
    note: str = ""
    """A sentence on what its source prints, where a reader would miss it."""

    @model_validator(mode="after")
    def _numbers_fit(self) -> Suite:
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

    def short_name(self, member: str) -> str:
        """The shortest name that means a member: the beginning of its configuration, or all of it.

        Example:
            >>> suite("fashioniq/val").short_name("fashioniq/dress_val")
            'dress'
        """
        words = member.partition("/")[2].split("_")
        begun = ("_".join(words[:count]) for count in range(1, len(words)))
        return next((name for name in begun if self.member(name) == member), "_".join(words))

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
            not a mean over queries has none. Hits@K by turn go to the last turn of any member (`known_as`).

        Example:
            >>> of_three = [{"recall@10": 0.2}, {"recall@10": 0.3}, {"recall@10": 0.8}]
            >>> suite("fashioniq/val").reduce(of_three, [10, 30, 60])["recall@10@micro"]
            0.59
        """
        known = [{name: value for name, value in member.items() if value is not None} for member in values]
        there = dict.fromkeys(name for each in sorted(known, key=len, reverse=True) for name in each)
        names = metrics or [name for name in there if all(known_as(name, each) in each for each in known)]
        micro = [name + MICRO_SUFFIX for name in names if _is_mean(name)]
        printed = [*names, *(micro if "micro" in (averages or self.averages) else ())]
        return {
            name: mean_over_members(name, [member[known_as(name, member)] for member in known], queries)
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


def known_as(metric: str, names: Collection[str]) -> str:
    """What a suite's number is called where one member is known.

    Hits@K count every session at every turn, and one that has ended keeps its last value. So behind a
    member's last turn stands the value of that turn.

    Args:
        metric: printed name of the suite's number.
        names: of the member's numbers.

    Example:
        >>> known_as("recall@10@micro", ["recall@10"])
        'recall@10'
        >>> known_as("hits@10@turn6", ["hits@10@turn4", "hits@10@turn5"])
        'hits@10@turn5'
    """
    name = member_metric(metric)
    hits, at, turn = name.partition("@turn")
    if name in names or not at or not hits.startswith("hits@"):
        return name
    earlier = (f"{hits}@turn{number}" for number in range(int(turn) - 1, 0, -1))
    return next((each for each in earlier if each in names), name)


def mean_over_members(metric: str, values: Sequence[float], queries: Sequence[int]) -> float:
    """One number of a suite; of one benchmark alone its own.

    macro = (1/M) * sum_m v_m,  micro = sum_m n_m * v_m / sum_m n_m.

    Args:
        metric: printed name, which says the average.
        values: of each member.
        queries: of each member the number of queries or sessions; a macro mean does not read it.

    Example:
        >>> mean_over_members("recall@10", [0.5, 0.25], [1, 3])
        0.375
        >>> mean_over_members("recall@10@micro", [0.5, 0.25], [1, 3])
        0.3125
    """
    if is_micro(metric):
        weighted = [count * value for count, value in zip(queries, values, strict=True)]
        return math.fsum(weighted) / sum(queries)
    return math.fsum(values) / len(values)


def member_shares(metric: str, queries: Sequence[int]) -> list[float]:
    """Share of each member in a number: equal shares, or (`@micro`) by the number of queries.

    Args:
        metric: printed name of the number.
        queries: of each member the number of queries or sessions; one member alone has the whole.

    Returns:
        A share a member, adding up to 1.

    Example:
        >>> member_shares("recall@10", [30, 10]), member_shares("recall@10@micro", [30, 10])
        ([0.5, 0.5], [0.75, 0.25])
    """
    weights = queries if is_micro(metric) else [1] * len(queries)
    return [weight / sum(weights) for weight in weights]


def _is_mean(metric: str) -> bool:
    """Whether a metric is a mean over queries or sessions."""
    return metric not in NO_MEANS and not metric.startswith("hits_auc@")


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
        ('circled', 'circled/train', 'circled/val')
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
        raise UnknownNameError.of("suite", suite_id, suite_ids())
    return _suites()[suite_id]


def find_suite(suite_id: str) -> Suite | None:
    """The suite of that id, or None."""
    return _suites().get(suite_id)


@dataclass(frozen=True)
class SuiteSignature:
    """What a suite's number was computed on; it has the properties of a `Signature` that tables read.

    Args:
        suite: the suite's id.
        suite_version: its version.
        metric: printed name of the number, `recall@10` or `recall@10@micro`.
        average: whether every member weighs the same (`macro`) or every query does (`micro`).
        members: the members' signatures, in the suite's order.
    """

    suite: str
    suite_version: int
    metric: str
    average: Literal["macro", "micro"]
    members: tuple[Signature, ...]

    @classmethod
    def of(cls, suite: str, version: int, metric: str, members: Sequence[Signature]) -> SuiteSignature:
        """The signature of a number by its printed name, which says the average.

        Args:
            suite: the suite's id.
            version: its version.
            metric: `recall@10`, or `recall@10@micro`.
            members: the members' signatures, in the suite's order.
        """
        return cls(suite, version, metric, "micro" if is_micro(metric) else "macro", tuple(members))

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> SuiteSignature:
        """The signature that `to_dict` wrote, of this format or of an earlier one.

        Raises:
            InputError: a field is missing, or a member is not a signature.
        """
        try:
            members = tuple(map(Signature.from_dict, stored["members"]))
            suite, version = stored["suite"], stored["suite_version"]
            return cls(suite, version, stored["metric"], stored["average"], members)
        except KeyError as error:
            raise InputError(
                f"not a suite's signature: {error} is missing. Fix: pass one that to_dict wrote."
            ) from error

    @property
    def key(self) -> str:
        """The comparability key: suite, average and the members' keys."""
        return " + ".join([f"suite:{self.suite}#{self.suite_version}|mean:{self.average}", *self._keys()])

    @property
    def n(self) -> int:
        """Number of queries or sessions of all members."""
        return sum(member.n for member in self.members)

    @property
    def members_hash(self) -> str:
        """sha256 (hex) over the members' keys, a line each."""
        return hashlib.sha256("\n".join(self._keys()).encode()).hexdigest()

    @property
    def unverified(self) -> bool:
        """Whether a member's number is unverified (`Signature.unverified`)."""
        return any(member.unverified for member in self.members)

    @property
    def missing_aspects(self) -> tuple[str, ...]:
        """Aspects that a member's card names and no query of it has, each once."""
        return tuple(dict.fromkeys(name for member in self.members for name in member.missing_aspects))

    @property
    def differs_in_reference(self) -> bool:
        """Whether the members made different use of the reference, by declaration or by what lists hold."""
        from cir_metrics.signature import shares_differ

        shares = [member.reference_held for member in self.members]
        return len({member.reference for member in self.members}) > 1 or any(
            shares_differ(one, other) for one, other in combinations(shares, 2)
        )

    def __str__(self) -> str:
        """The printed form; `members` counts and hashes the members' keys.

        Where members differ in what became of the reference, `ref` and `held` list them all; where one is
        unverified, `held` does.
        """
        parts = [
            f"{self.suite}#{self.suite_version}",
            f"mean:{self.average}",
            f"members:{len(self.members)}:{self.members_hash[:_SHORT]}",
            *self._reference_use(),
            *([f"missing:{','.join(self.missing_aspects)}"] if self.missing_aspects else []),
            *([f"sig:{self.members[0].format}"] if self.members[0].format > 1 else []),
            f"n:{self.n}",
            f"v:{self.members[0].package_version}",
        ]
        return " | ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """The fields, the members' signatures and the key, ready for JSON."""
        return {
            "suite": self.suite,
            "suite_version": self.suite_version,
            "metric": self.metric,
            "average": self.average,
            "members_hash": self.members_hash,
            "members": [{**member.to_dict(), "text": str(member)} for member in self.members],
            "n": self.n,
            "package_version": self.members[0].package_version,
            "key": self.key,
            **({"unverified": True} if self.unverified else {}),
        }

    def _reference_use(self) -> list[str]:
        if not (self.differs_in_reference or self.unverified):
            return []
        shares = [
            "-"
            if member.reference_held is None
            else "{}/{}".format(*member.reference_held) + (":unverified" if member.unverified else "")
            for member in self.members
        ]
        held = f"held:{','.join(shares)}"
        if not self.differs_in_reference:
            return [held]
        return [f"ref:{','.join(member.reference for member in self.members)}", held]

    def _keys(self) -> list[str]:
        return [member.key for member in self.members]


def signature_over(benchmark: str, metric: str, members: Sequence[Signature]) -> Signature | SuiteSignature:
    """The signature of a number: over a suite's members, or of the one benchmark.

    Args:
        benchmark: id of the benchmark or suite.
        metric: printed name of the number.
        members: the signature of each member's metric, in the suite's order.
    """
    suite = find_suite(benchmark)
    return members[0] if suite is None else SuiteSignature.of(suite.id, suite.version, metric, members)


def read_signature(stored: Mapping[str, Any]) -> Signature | SuiteSignature:
    """The signature that `to_dict` of either wrote.

    Raises:
        InputError: a field is missing, or a member is not a signature.
    """
    return SuiteSignature.from_dict(stored) if "members" in stored else Signature.from_dict(stored)
