"""The signature of a number over a suite: which average, and of which members' numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from cir_datasets.registry.schema import is_micro
from cir_datasets.registry.suites import find_suite
from cir_metrics.catalogue import Signature
from cir_metrics.errors import InputError
from cir_metrics.signature import shares_differ

_SHORT = 7
"""Characters of a hash in the printed form, as in `Signature`."""


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
