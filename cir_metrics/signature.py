"""What a number was computed on and how: printed beside every score, compared before any two are.

The comparability key holds what can move a number; package version and number of queries stand beside it for
the record. Two numbers are comparable when their keys agree.

What a file shows is measured (in how many of its lists the reference stands), what it cannot show is declared
by its maker (that the reference was taken out), and the two stand in fields of their own.

Signatures have a format, which is part of the key. Format 1 (until version 0.1.0) hashed the data without
each query's single target, and called the ties of lists `last`; format 2 repeated what the protocol says of
the reference, whatever the lists held. Their signatures are read, and equal no others.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib import metadata
from typing import Any, Literal, get_args

from cir_metrics.catalogue import check_variant, metric, parse_metric
from cir_metrics.errors import InputError

FORMAT = 3
"""+1 whenever a part of the key means something else than before."""

_SHORT = 7
"""Characters of a hash in the printed form."""

ReferenceUse = Literal["kept", "removed", "outside", "none"]
"""What became of the reference image: kept in the ranking, removed from it, outside the gallery anyway, or
not there to begin with, since no query has one."""
Declared = Literal["", "kept", "removed"]
"""What a rank file's maker says of it; empty where nothing is said."""

_LEFT_OUT = {
    "search": "",
    "reranking": "",
    "dialogue": "",
    "gallery_kind": "shared",
    "ranked": "",
    "repaired": (),
    "reference_held": None,
    "reference_declared": "",
    "missing_aspects": (),
}
"""Fields that are not written where they say nothing, with that value."""

_ABSENT = {"dialogue": "none", "ranked": "the gallery", "repaired": "none"}
"""Parts that stand in a key only where there is something to say, and what is meant where they do not."""

_REDEFINED = {2: ("data", "ties"), 3: ("ref",)}
"""By format the parts that meant something else before it, so that they are not compared."""

_TENFOLD = 10
_ENOUGH = 10
"""Lists with the reference that a share must let expect before another share counts as different."""


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
        name, _ = parse_metric(self.metric)
        for field, looked_up in (
            ("variant", metric(name).default_variant),
            ("metric_version", metric(name).version),
            ("package_version", package_version()),
        ):
            object.__setattr__(self, field, getattr(self, field) or looked_up)
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
            UnknownNameError: no metric has that printed name.
            InputError: the metric has no such variant, or see the class.
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
        known = {"format": 1, "checks_skipped": (), **_LEFT_OUT, "ties": "last", **stored}
        absent = [each.name for each in fields(cls) if each.name not in known]
        if absent:
            raise InputError(
                f"not a signature: {absent[0]!r} is missing. Fix: pass one that Signature.to_dict wrote."
            )
        return cls(**{each.name: known[each.name] for each in fields(cls)})

    @property
    def key(self) -> str:
        """The comparability key: everything that can move the number, with whole hashes."""
        return "|".join(f"{name}:{value}" for name, value in self._parts().items())

    @property
    def unverified(self) -> bool:
        """Whether nothing shows that the reference was kept: no list holds it, and nothing is declared.

        A mark and no verdict: a method may rank every reference below the end of its lists.
        """
        if self.reference_held is None or self.reference != "kept" or self.reference_declared:
            return False
        return self.reference_held[0] == 0 < self.reference_held[1]

    def __str__(self) -> str:
        """The printed form, with hashes of seven characters."""
        parts = [
            f"{self.benchmark}#{self.benchmark_version}",
            f"data:{self.data_hash[:_SHORT]}",
            f"gallery:{self._gallery(_SHORT)}",
            *([f"ranked:{self.ranked}"] if self.ranked else []),
            f"ref:{self.reference}",
            f"ties:{self.ties}",
            f"metric:{self._metric_version()}",
        ]
        if self.format > 1:
            parts.append(f"sig:{self.format}")
        said = {
            "skipped": ",".join(self.checks_skipped),
            "repaired": ",".join(self.repaired),
            "missing": ",".join(self.missing_aspects),
            "search": self.search,
            "rerank": self.reranking,
            "dialogue": self.dialogue,
        }
        parts += [f"{name}:{text}" for name, text in said.items() if text]
        if self.reference_held is not None and self.reference == "kept":
            mark = ":unverified" if self.unverified else ""
            parts.append(f"held:{self.reference_held[0]}/{self.reference_held[1]}{mark}")
        if self.reference_declared:
            parts.append(f"declared:{self.reference_declared}")
        return " | ".join([*parts, f"n:{self.n}", f"v:{self.package_version}"])

    def to_dict(self) -> dict[str, Any]:
        """The fields and the key, ready for JSON; what says nothing, or was unknown to the format, is not."""
        values = {name: value for name, value in asdict(self).items() if value != _LEFT_OUT.get(name, ...)}
        if self.format == 1:
            del values["format"]
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
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
        name, _ = parse_metric(self.metric)
        default = self.variant == metric(name).default_variant
        return str(self.metric_version) if default else f"{self.metric_version}:{self.variant}"


def differences(first: Signature, second: Signature) -> list[str]:
    """Which parts of two comparability keys differ, one line a part; empty when the numbers are comparable.

    Of two formats that is said first, and parts that mean something else in the one than in the other are
    left out.

    Args:
        first: one number's signature.
        second: the other's.

    Returns:
        Lines such as `ref: kept against removed`.

    Example:
        >>> one = Signature.of("map@5", benchmark="circo/val", benchmark_version=1, data_hash="4f1c",
        ...     gallery_hash=None, gallery_size=None, reference="kept", n=220)
        >>> two = Signature.of("map@5", benchmark="circo/val", benchmark_version=2, data_hash="4f1c",
        ...     gallery_hash=None, gallery_size=None, reference="kept", n=220)
        >>> differences(one, two)
        ['benchmark: circo/val#1 against circo/val#2']
    """
    left, right = ({"sig": "1"} | each._parts() for each in (first, second))
    older, newer = sorted((first.format, second.format))
    redefined = {part for format in range(older + 1, newer + 1) for part in _REDEFINED[format]}
    lines = []
    for name in dict.fromkeys((*left, *right)):
        one, other = (parts.get(name, _ABSENT.get(name)) for parts in (left, right))
        if one != other and name not in redefined:
            lines.append(f"{name}: {one} against {other}")
    return lines


def shares_differ(first: tuple[int, int] | None, second: tuple[int, int] | None) -> bool:
    """Whether the one file's lists hold the reference ten times as often as the other's, by more than chance.

    Two files of one protocol may differ so by what the methods think of the reference, or because one of
    them took it out: the numbers alone do not say.

    Args:
        first: lists that hold it and lists looked at (`Signature.reference_held`), or None.
        second: the other's.

    Returns:
        False where either was not looked at, or where too few lists were to say so.

    Example:
        >>> shares_differ((2017, 2017), (0, 2017)), shares_differ((3, 2017), (0, 2017))
        (True, False)
    """
    if first is None or second is None or not (first[1] and second[1]):
        return False
    (held, lists), (few, others) = sorted((first, second), key=lambda pair: pair[0] / pair[1], reverse=True)
    return held * others >= _TENFOLD * few * lists and held * min(lists, others) >= _ENOUGH * lists
