"""Metrics by name: which exist (`catalogue.json`), and the signature that a number of theirs is printed with.

A metric has a module name (`recall_at_k`, what `evaluate.load` takes) and a printed name (`recall`, what
boards, cards and scores show, with its cutoff: `recall@5`). A version goes up whenever a number can move.

A signature says what a number was computed on and how. Two numbers are comparable when the keys of their
signatures agree; `cir_metrics.signature` says where they do not. What a file shows is measured (how many of
its lists hold the reference), what it cannot show is declared by its maker (that the reference was removed).
"""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from importlib import metadata, resources
from typing import Any, Literal, get_args

from cir_metrics.errors import InputError, UnknownNameError, did_you_mean


@dataclass(frozen=True)
class MetricEntry:
    """One metric.

    Args:
        name: module name, such as `recall_at_k`.
        printed: printed name without cutoff, such as `recall`.
        short: what narrow columns are headed by, without cutoff, such as `R`.
        version: goes up whenever a number of this metric can move.
        title: how tables head it.
        description: one sentence.
        protocols: `single_turn`, `multi_turn`, or both.
        fields: what a reference must hold, of target, reference, subset, positives, negatives.
        default_ks: cutoffs where the caller names none; empty for a metric without cutoff.
        variants: ways to compute it; the first is the default, the paper's definition.
        source: paper and equation.
        url: the paper's address, empty where it has none yet.
    """

    name: str
    printed: str
    short: str
    version: int
    title: str
    description: str
    protocols: tuple[str, ...]
    fields: tuple[str, ...]
    default_ks: tuple[int, ...]
    variants: tuple[str, ...]
    source: str
    url: str

    @property
    def default_variant(self) -> str:
        """The paper's definition."""
        return self.variants[0]

    @property
    def has_cutoff(self) -> bool:
        """Whether the printed name ends in `@K`."""
        return bool(self.default_ks)

    @property
    def reads_subset(self) -> bool:
        """Whether it is computed from the ranking of the query's own subset, not from the gallery's."""
        return "subset" in self.fields


def _read() -> dict[str, MetricEntry]:
    text = (resources.files("cir_metrics") / "catalogue.json").read_text(encoding="utf-8")
    entries: dict[str, dict[str, Any]] = json.loads(text)
    for entry in entries.values():
        entry.update({name: tuple(value) for name, value in entry.items() if isinstance(value, list)})
    return {name: MetricEntry(name=name, **entry) for name, entry in entries.items()}


METRICS: Mapping[str, MetricEntry] = _read()
"""Module name -> entry, in the order in which they are listed everywhere."""

_BY_PRINTED = {entry.printed: entry for entry in METRICS.values()}
NO_MEANS = {"median_rank": "mean_rank", "censored": "mean_rank"}
"""Numbers that are no means over queries, a median and a count -> the metric that they come with."""
BY_TURN = ("hits_at_k", "recall_at_k", "map_at_k", "mean_rank")
"""Metrics that have a value a turn: the first in any session, the others where each round of a dialogue is
ranked and measured by itself."""
_PRINTED = re.compile(r"(?P<name>[a-z_]+)(?:@(?P<k>-?\d+))?(?:@turn(?P<turn>\d+))?")


def parse_metric(printed: str) -> tuple[str, int | None]:
    """Module name and cutoff of a printed name, or of any key that a score is reported under.

    Args:
        printed: such as `recall@5`, `mean_rank`, `hits@10@turn2`, `median_rank`.

    Returns:
        Module name, and the cutoff or None where the metric has none.

    Raises:
        UnknownNameError: no metric has that printed name; the message names the nearest.
        InputError: the cutoff is missing, out of place, or below 1.

    Example:
        >>> parse_metric("recall@5"), parse_metric("hits@10@turn2"), parse_metric("mean_rank")
        (('recall_at_k', 5), ('hits_at_k', 10), ('mean_rank', None))
    """
    match = _PRINTED.fullmatch(printed)
    name = match["name"] if match else printed.partition("@")[0]
    entry = _BY_PRINTED.get(name) or METRICS.get(NO_MEANS.get(name, ""))
    if entry is None or match is None:
        raise UnknownNameError(_unknown(printed, name))
    if match["turn"] is not None and entry.name not in BY_TURN:
        names = ", ".join(METRICS[each].printed for each in BY_TURN)
        raise InputError(
            f"{printed!r} names a turn; only {names} have a value a turn. Fix: drop '@turn{match['turn']}'."
        )
    if not entry.has_cutoff:
        if match["k"] is not None:
            raise InputError(f"{printed!r} names a cutoff; {name} has none. Fix: write {name!r}.")
        return entry.name, None
    if match["k"] is None:
        raise InputError(
            f"{printed!r} names no cutoff. Fix: write '{name}@K', such as '{name}@{entry.default_ks[0]}'."
        )
    k = int(match["k"])
    if k < 1:
        raise InputError(
            f"{printed!r}: k={k}; a cutoff is 1 or more. Fix: ask for {entry.printed}@1 or more."
        )
    return entry.name, k


def reads_subset(printed: str) -> bool:
    """Whether a printed name is that of a metric of the query's own subset.

    Raises:
        UnknownNameError, InputError: as `parse_metric`.

    Example:
        >>> reads_subset("recall_subset@1"), reads_subset("recall@1")
        (True, False)
    """
    return METRICS[parse_metric(printed)[0]].reads_subset


def metric(name: str) -> MetricEntry:
    """The entry of a module name such as `recall_at_k`.

    Raises:
        UnknownNameError: no metric has that name; the message names the nearest.

    Example:
        >>> metric("pnr_map").variants
        ('equation', 'released_code')
    """
    if name not in METRICS:
        raise UnknownNameError(
            f"no metric {name!r}.{did_you_mean(name, METRICS)} Fix: use one that `cir metrics list` shows."
        )
    return METRICS[name]


def check_variant(name: str, variant: str | None) -> str:
    """The variant to compute: the default where none is named.

    Raises:
        InputError: the metric has no such variant.

    Example:
        >>> check_variant("pnr_map", None)
        'equation'
    """
    entry = metric(name)
    if variant is None:
        return entry.default_variant
    if variant not in entry.variants:
        known = ", ".join(repr(each) for each in entry.variants)
        raise InputError(f"variant={variant!r}: {name} has no such variant. Fix: use one of {known}.")
    return variant


_IN_TABLES = {"r": "recall", "rs": "recall_subset", "r_s": "recall_subset", "r_subset": "recall_subset"}
"""What papers print above a column, and what it is here."""


def _unknown(printed: str, name: str) -> str:
    meant = METRICS[name].printed if name in METRICS else _IN_TABLES.get(name.casefold(), name.casefold())
    near = difflib.get_close_matches(meant, [*_BY_PRINTED, *NO_MEANS], n=1, cutoff=0.5)
    entry = _BY_PRINTED.get(near[0]) if near else None
    if entry and entry.has_cutoff:
        cutoff = re.fullmatch(r"[^@]*@([1-9][0-9]*)", printed)
        near = [f"{near[0]}@{cutoff[1] if cutoff else entry.default_ks[0]}"]
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no metric is printed as {printed!r}.{hint} Fix: use one that `cir metrics list` shows."


FORMAT = 3
"""+1 whenever a part of the key means something else than before."""

_SHORT = 7
"""Characters of a hash in the printed form."""
ReferenceUse = Literal["kept", "removed", "outside", "none"]
"""What became of the reference image: kept in the ranking, removed from it, outside the gallery anyway, or
not there to begin with, since no query has one."""
Declared = Literal["", "kept", "removed"]
"""What a rank file's maker says of it; empty where nothing is said."""

INCOMPLETE, SKIPPED_IMAGES = "complete", "images"
"""What --allow-missing skips, and --skip-missing while a method ranks: their numbers stand apart."""

_LOOKED_UP = ("variant", "metric_version", "package_version")
_ALWAYS_WRITTEN = {*_LOOKED_UP, "checks_skipped", "ties", "format"}
"""Fields that are written even where they are as by default; others then say nothing."""

_CHOICES: dict[str, tuple[str, ...]] = {
    "ties": ("last", "listed"),
    "reference": get_args(ReferenceUse),
    "gallery_kind": ("shared", "per-query"),
    "reference_declared": get_args(Declared),
}
"""Fields that are one of several words."""


@functools.cache
def package_version() -> str:
    """Version of the installed distribution, `unknown` where the code runs without being installed."""
    try:
        return metadata.version("cir-benchmarks")
    except metadata.PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True, kw_only=True)
class Signature:
    """One number's signature; variant and versions that are not given are looked up.

    Args:
        benchmark: benchmark id, `name/config`.
        benchmark_version: the card's version.
        data_hash: sha256 (hex) over the rows.
        gallery_hash: sha256 (hex) over the sorted image ids, or None where the gallery is not available.
        gallery_size: number of images, or None likewise.
        reference: what became of the reference image, `kept`, `removed`, `outside` (no query's reference is
            in its gallery) or `none` (no query has a reference).
        metric: printed name, such as `recall@5`.
        variant: how the metric was computed; empty for the default.
        metric_version: the catalogue's version of the metric; 0 for that of today.
        checks_skipped: names of checks that were not made, such as `counts`.
        n: number of queries or sessions.
        package_version: version of this package; empty for that which runs.
        ties: the tie rule. `last`: ranks were computed from scores, and equal scores count against the
            target. `listed`: ranks are places in a list, and whoever wrote the list broke the ties.
        search: how the method searched the gallery, with its measured recall; empty where that was exact or
            is not given. For the record, not in the key.
        reranking: how the method put its best images in another order; else empty. For the record as well.
        dialogue: of a number from a transcript the choices of the dialogue and who its user was; else empty.
        gallery_kind: `shared` by all queries, or `per-query`: size and hash are then those of all queries'
            galleries together (`cir_datasets.rows.hashing.galleries_hash`).
        ranked: name of the known gallery that was evidently ranked in place of the declared one; else empty.
        repaired: names of the repairs that were made to the file before it was scored.
        reference_held: how many lists hold their query's reference, and how many were looked at, over the
            whole lists as they stand in the file; None where nothing was looked at. For the record.
        reference_declared: what the file declares of the reference; empty where nothing. For the record.
        missing_aspects: aspects that the benchmark's card names and no query has, so that a mean over aspects
            is one over fewer. For the record: the data hash says it, too.
        format: what the parts mean; 1 for what versions until 0.1.0 wrote.

    Raises:
        InputError: gallery hash without size or size without hash, an unknown `reference`, `ties` or
            `gallery_kind`, more lists with the reference than lists, or a format that this version does not
            know.

    Example:
        >>> signature = Signature.of("recall@10", benchmark="circo/val", benchmark_version=1, ties="listed",
        ...     data_hash="4f1c2ab99", gallery_hash="9be02d177", gallery_size=3817, reference="kept", n=9)
        >>> str(signature).partition(" | n:")[0]
        'circo/val#1 | data:4f1c2ab | gallery:3817:9be02d1 | ref:kept | ties:listed | metric:1 | sig:3'
        >>> Signature.from_dict(signature.to_dict()) == signature
        True
    """

    benchmark: str
    benchmark_version: int
    data_hash: str
    gallery_hash: str | None
    gallery_size: int | None
    reference: ReferenceUse
    metric: str
    variant: str = ""
    metric_version: int = 0
    checks_skipped: tuple[str, ...] = ()
    n: int
    package_version: str = ""
    ties: Literal["last", "listed"] = "last"
    search: str = ""
    reranking: str = ""
    dialogue: str = ""
    gallery_kind: Literal["shared", "per-query"] = "shared"
    ranked: str = ""
    repaired: tuple[str, ...] = ()
    reference_held: tuple[int, int] | None = None
    reference_declared: Declared = ""
    missing_aspects: tuple[str, ...] = ()
    format: int = FORMAT

    def __post_init__(self) -> None:
        """Look up what is not given, and refuse what cannot be compared."""
        entry = metric(parse_metric(self.metric)[0])
        looked_up = (entry.default_variant, entry.version, package_version())
        for name, value in zip(_LOOKED_UP, looked_up, strict=True):
            object.__setattr__(self, name, getattr(self, name) or value)
        if self.format not in range(1, FORMAT + 1):
            raise InputError(
                f"a signature of format {self.format!r}; this version reads 1 to {FORMAT}. "
                "Fix: read it with the version of cir-benchmarks that wrote it."
            )
        for name, words in _CHOICES.items():
            if getattr(self, name) not in words:
                known = ", ".join(map(repr, words))
                raise InputError(f"{name}={getattr(self, name)!r}. Fix: use one of {known}.")
        if (self.gallery_hash is None) != (self.gallery_size is None):
            raise InputError(
                "a signature has both gallery hash and size, or neither. Fix: pass both or None twice."
            )
        if self.reference_held is not None:
            held, lists = self.reference_held
            if not 0 <= held <= lists:
                raise InputError(
                    f"reference_held={self.reference_held!r}. Fix: pass how many lists hold the reference, "
                    "and how many were looked at, which are at least as many."
                )
            object.__setattr__(self, "reference_held", (held, lists))
        for name in ("checks_skipped", "repaired", "missing_aspects"):
            object.__setattr__(self, name, tuple(sorted(getattr(self, name))))

    @classmethod
    def of(cls, printed: str, *, variant: str | None = None, **parts: Any) -> Signature:
        """The signature of a score named `printed`: `variant` may be None, `parts` are the other fields.

        Raises:
            UnknownNameError, InputError: as `parse_metric` and `check_variant`, or see the class.
        """
        return cls(metric=printed, variant=check_variant(parse_metric(printed)[0], variant), **parts)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Signature:
        """The signature that `to_dict` wrote, of this format or of an earlier one.

        Args:
            stored: the dict; without a `format` it is of format 1. Other keys (`key`, `text`) are not read.

        Raises:
            InputError: a field is missing or wrong, or see the class.

        Example:
            >>> Signature.from_dict({"benchmark": "circo/val"})
            Traceback (most recent call last):
            ...
            cir_metrics.errors.InputError: not a signature: 'benchmark_version' is missing. Fix: ...
        """
        for each in fields(cls):
            if each.name not in stored and (each.default is MISSING or each.name in _LOOKED_UP):
                raise InputError(
                    f"not a signature: {each.name!r} is missing. Fix: pass one that Signature.to_dict wrote."
                )
        known = {each.name: stored[each.name] for each in fields(cls) if each.name in stored}
        return cls(**{"format": 1, **known})

    @property
    def key(self) -> str:
        """The comparability key: everything that can move the number, with whole hashes."""
        return "|".join(f"{name}:{value}" for name, value in self._parts().items())

    @property
    def unverified(self) -> bool:
        """Whether nothing shows that the reference was kept: no list holds it, and nothing is declared.

        A mark and no verdict: a method may rank every reference below the end of its lists.
        """
        held, lists = self.reference_held or (0, 0)
        return self.reference == "kept" and not self.reference_declared and held == 0 < lists

    def __str__(self) -> str:
        """The printed form, with hashes of seven characters."""
        held = ""
        if self.reference_held is not None and self.reference == "kept":
            held = "/".join(map(str, self.reference_held)) + (":unverified" if self.unverified else "")
        beside = {
            "sig": str(self.format) if self.format > 1 else "",
            "skipped": ",".join(self.checks_skipped),
            "repaired": ",".join(self.repaired),
            "missing": ",".join(self.missing_aspects),
            "search": self.search,
            "rerank": self.reranking,
            "dialogue": self.dialogue,
            "held": held,
            "declared": self.reference_declared,
        }
        parts = [
            f"{self.benchmark}#{self.benchmark_version}",
            f"data:{self.data_hash[:_SHORT]}",
            f"gallery:{self._gallery(_SHORT)}",
            *([f"ranked:{self.ranked}"] if self.ranked else []),
            f"ref:{self.reference}",
            f"ties:{self.ties}",
            f"metric:{self._metric_version()}",
            *(f"{name}:{text}" for name, text in beside.items() if text),
        ]
        return " | ".join([*parts, f"n:{self.n}", f"v:{self.package_version}"])

    def to_dict(self) -> dict[str, Any]:
        """The fields and the key, ready for JSON; what says nothing, or was unknown to the format, is not."""
        values = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if name in _ALWAYS_WRITTEN or value != type(self).__dataclass_fields__[name].default
        }
        if self.format == 1:
            del values["format"]
        return {**values, "key": self.key, **({"unverified": True} if self.unverified else {})}

    def _parts(self) -> dict[str, str]:
        return {
            **({} if self.format == 1 else {"sig": str(self.format)}),
            "benchmark": f"{self.benchmark}#{self.benchmark_version}",
            "data": self.data_hash,
            "gallery": self._gallery(None),
            **({"ranked": self.ranked} if self.ranked else {}),
            "ref": self.reference,
            "ties": self.ties,
            "metric": f"{self.metric}:{self._metric_version()}",
            "skipped": ",".join(self.checks_skipped) or "none",
            **({"repaired": ",".join(self.repaired)} if self.repaired else {}),
            **({"dialogue": self.dialogue} if self.dialogue else {}),
        }

    def _gallery(self, characters: int | None) -> str:
        kind = "" if self.gallery_kind == "shared" else f"{self.gallery_kind}:"
        if self.gallery_hash is None:
            return f"{kind}unknown"
        return f"{kind}{self.gallery_size}:{self.gallery_hash[:characters]}"

    def _metric_version(self) -> str:
        default = self.variant == metric(parse_metric(self.metric)[0]).default_variant
        return str(self.metric_version) if default else f"{self.metric_version}:{self.variant}"
