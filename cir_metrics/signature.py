"""What a number was computed on and how: printed beside every score, compared before any two are.

The comparability key holds what can move a number; package version and number of queries stand beside it for
the record. Two numbers are comparable when their keys agree.

Signatures have a format, which is part of the key. Format 1 (until version 0.1.0) hashed the data without
each query's single target, and called the ties of lists `last`; its signatures are read, and equal no others.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib import metadata
from typing import Any, Literal

from cir_metrics.catalogue import check_variant, metric, parse_metric
from cir_metrics.errors import InputError

FORMAT = 2
"""+1 whenever a part of the key means something else than before."""

_SHORT = 7
"""Characters of a hash in the printed form."""

_FOR_THE_RECORD = ("search", "reranking", "dialogue")
"""Fields that are left out where they are empty."""

_REDEFINED = ("data", "ties")
"""Parts that mean one thing in format 1 and another in format 2, so that they are not compared."""


@functools.cache
def package_version() -> str:
    """Version of the installed distribution, `unknown` where the code runs without being installed."""
    try:
        return metadata.version("cir-benchmarks")
    except metadata.PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True, kw_only=True)
class Signature:
    """One number's signature; build it with `Signature.of`, which looks up versions.

    Args:
        benchmark: benchmark id, `name/config`.
        benchmark_version: the card's version.
        data_hash: sha256 (hex) over the rows.
        gallery_hash: sha256 (hex) over the sorted image ids, or None where the gallery is not available.
        gallery_size: number of images, or None likewise.
        reference: whether the protocol keeps the reference image in the ranking.
        metric: printed name, such as `recall@5`.
        variant: how the metric was computed.
        metric_version: the catalogue's version of the metric.
        checks_skipped: names of checks that were not made, such as `counts`.
        n: number of queries or sessions.
        package_version: version of this package.
        ties: the tie rule. `last`: ranks were computed from scores, and equal scores count against the
            target. `listed`: ranks are places in a list, and whoever wrote the list broke the ties.
        search: how the method searched the gallery, with its measured recall; empty where that was exact or
            is not given. For the record, not in the key.
        reranking: how the method put its best images in another order; else empty. For the record as well.
        dialogue: of a number from a transcript the choices of the dialogue and who its user was; else empty.
        format: what the parts mean; 1 for what versions until 0.1.0 wrote.

    Raises:
        InputError: gallery hash without size or size without hash, an unknown `reference` or `ties`, or a
            format that this version does not know.

    Example:
        >>> signature = Signature.of("recall@10", benchmark="circo/val", benchmark_version=1, ties="listed",
        ...     data_hash="4f1c2ab99", gallery_hash="9be02d177", gallery_size=3817, reference="kept", n=9)
        >>> str(signature).partition(" | n:")[0]
        'circo/val#1 | data:4f1c2ab | gallery:3817:9be02d1 | ref:kept | ties:listed | metric:1 | sig:2'
        >>> Signature.from_dict(signature.to_dict()) == signature
        True
    """

    benchmark: str
    benchmark_version: int
    data_hash: str
    gallery_hash: str | None
    gallery_size: int | None
    reference: Literal["kept", "removed"]
    metric: str
    variant: str
    metric_version: int
    checks_skipped: tuple[str, ...] = ()
    n: int
    package_version: str
    ties: Literal["last", "listed"] = "last"
    search: str = ""
    reranking: str = ""
    dialogue: str = ""
    format: int = FORMAT

    def __post_init__(self) -> None:
        """Refuse what cannot be compared."""
        if self.format not in range(1, FORMAT + 1):
            raise InputError(
                f"a signature of format {self.format!r}; this version reads 1 to {FORMAT}. "
                "Fix: read it with the version of cir-benchmarks that wrote it."
            )
        if self.ties not in ("last", "listed"):
            raise InputError(f"ties={self.ties!r}. Fix: use 'last' or 'listed'.")
        if (self.gallery_hash is None) != (self.gallery_size is None):
            raise InputError(
                "a signature has both gallery hash and size, or neither. Fix: pass both or None twice."
            )
        if self.reference not in ("kept", "removed"):
            raise InputError(f"reference={self.reference!r}. Fix: use 'kept' or 'removed'.")
        object.__setattr__(self, "checks_skipped", tuple(sorted(self.checks_skipped)))

    @classmethod
    def of(
        cls,
        printed: str,
        *,
        benchmark: str,
        benchmark_version: int,
        data_hash: str,
        gallery_hash: str | None,
        gallery_size: int | None,
        reference: Literal["kept", "removed"],
        n: int,
        variant: str | None = None,
        checks_skipped: tuple[str, ...] = (),
        ties: Literal["last", "listed"] = "last",
        search: str = "",
        reranking: str = "",
        dialogue: str = "",
    ) -> Signature:
        """The signature of a score named `printed`; metric version and package version are looked up.

        Raises:
            UnknownNameError: no metric has that printed name.
            InputError: the metric has no such variant, or see the class.
        """
        name, _ = parse_metric(printed)
        return cls(
            benchmark=benchmark,
            benchmark_version=benchmark_version,
            data_hash=data_hash,
            gallery_hash=gallery_hash,
            gallery_size=gallery_size,
            reference=reference,
            metric=printed,
            variant=check_variant(name, variant),
            metric_version=metric(name).version,
            checks_skipped=checks_skipped,
            n=n,
            package_version=package_version(),
            ties=ties,
            search=search,
            reranking=reranking,
            dialogue=dialogue,
        )

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
        absent_is_empty = dict.fromkeys(_FOR_THE_RECORD, "")
        known = {"format": 1, "checks_skipped": (), **absent_is_empty, "ties": "last", **stored}
        absent = [each.name for each in fields(cls) if each.name not in known]
        if absent:
            raise InputError(
                f"not a signature: {absent[0]!r} is missing. Fix: pass one that Signature.to_dict wrote."
            )
        parse_metric(known["metric"])
        values = {each.name: known[each.name] for each in fields(cls)}
        return cls(**values | {"checks_skipped": tuple(known["checks_skipped"])})

    @property
    def key(self) -> str:
        """The comparability key: everything that can move the number, with whole hashes."""
        return "|".join(f"{name}:{value}" for name, value in self._parts().items())

    def __str__(self) -> str:
        """The printed form, with hashes of seven characters."""
        parts = [
            f"{self.benchmark}#{self.benchmark_version}",
            f"data:{self.data_hash[:_SHORT]}",
            f"gallery:{self._gallery(_SHORT)}",
            f"ref:{self.reference}",
            f"ties:{self.ties}",
            f"metric:{self._metric_version()}",
        ]
        if self.format > 1:
            parts.append(f"sig:{self.format}")
        if self.checks_skipped:
            parts.append(f"skipped:{','.join(self.checks_skipped)}")
        if self.search:
            parts.append(f"search:{self.search}")
        if self.reranking:
            parts.append(f"rerank:{self.reranking}")
        if self.dialogue:
            parts.append(f"dialogue:{self.dialogue}")
        return " | ".join([*parts, f"n:{self.n}", f"v:{self.package_version}"])

    def to_dict(self) -> dict[str, Any]:
        """The fields and the key, ready for JSON; what format 1 did not write is left out of it."""
        found = {**asdict(self), "checks_skipped": list(self.checks_skipped), "key": self.key}
        for name in _FOR_THE_RECORD:
            if not found[name]:
                del found[name]
        if self.format == 1:
            del found["format"]
        return found

    def _parts(self) -> dict[str, str]:
        return {
            **({} if self.format == 1 else {"sig": str(self.format)}),
            "benchmark": f"{self.benchmark}#{self.benchmark_version}",
            "data": self.data_hash,
            "gallery": self._gallery(None),
            "ref": self.reference,
            "ties": self.ties,
            "metric": f"{self.metric}:{self._metric_version()}",
            "skipped": ",".join(self.checks_skipped) or "none",
            **({"dialogue": self.dialogue} if self.dialogue else {}),
        }

    def _gallery(self, characters: int | None) -> str:
        return (
            "unknown"
            if self.gallery_hash is None
            else f"{self.gallery_size}:{self.gallery_hash[:characters]}"
        )

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
    absent = {"dialogue": "none"} if first.dialogue or second.dialogue else {}
    left, right = ({"sig": "1"} | absent | each._parts() for each in (first, second))
    incomparable = () if first.format == second.format else _REDEFINED
    return [
        f"{name}: {left[name]} against {right[name]}"
        for name in left
        if left[name] != right[name] and name not in incomparable
    ]
