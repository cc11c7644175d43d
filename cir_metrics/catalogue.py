"""The metrics that exist, their versions and variants, read from `catalogue.json`, the one place for them.

A metric has a module name (`recall_at_k`, what `evaluate.load` takes) and a printed name (`recall`, what
boards, cards and scores show, with its cutoff: `recall@5`). A version goes up whenever a number can move.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

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
    return {name: _entry(name, **fields) for name, fields in entries.items()}


def _entry(name: str, **fields: Any) -> MetricEntry:
    frozen: dict[str, Any] = {
        key: tuple(each) if isinstance(each, list) else each for key, each in fields.items()
    }
    return MetricEntry(name=name, **frozen)


METRICS: Mapping[str, MetricEntry] = _read()
"""Module name -> entry, in the order in which they are listed everywhere."""

_BY_PRINTED = {entry.printed: entry for entry in METRICS.values()}
_BESIDE = {"median_rank": "mean_rank", "censored": "mean_rank"}
"""Results that come with another metric's -> that metric."""
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
    entry = _BY_PRINTED.get(name) or METRICS.get(_BESIDE.get(name, ""))
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
        UnknownNameError: no metric has that printed name.
        InputError: as `parse_metric`.

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
            f"no metric {name!r}.{did_you_mean(name, METRICS)} `cir metrics list` shows all."
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
    known = [*_BY_PRINTED, *_BESIDE]
    name = _IN_TABLES.get(name.casefold(), name.casefold())
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if not near and name in METRICS:
        near = [METRICS[name].printed]
    if near:
        entry = _BY_PRINTED.get(near[0])
        if entry and entry.has_cutoff:
            cutoff = re.fullmatch(r"[^@]*@([1-9][0-9]*)", printed)
            near = [f"{near[0]}@{cutoff[1] if cutoff else entry.default_ks[0]}"]
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no metric is printed as {printed!r}.{hint} `cir metrics list` shows all."
