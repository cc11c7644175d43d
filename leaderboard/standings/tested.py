"""What tests and draws say of a board's entries: rank groups, and confidence intervals of the main values.

Both are computed from the values per query that the store keeps. Intervals are those that `cir score
--intervals` prints for the files. Each depends on its entry's own values alone: a new entry needs only one
new interval, and tests with its group's leader.
"""

from __future__ import annotations

import hashlib
import io
import logging
import math
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cir_datasets.registry.schema import member_metric
from cir_datasets.registry.suites import member_shares
from cir_metrics.catalogue import NO_MEANS
from cir_metrics.resampling import DRAWS, LEVEL, SEED, bootstrapped_means, percentile_interval, share_factors
from cir_metrics.sums import FloatArray, exact_mean, exact_means, exact_sums
from leaderboard.boards import Board
from leaderboard.queue import LISTS
from leaderboard.standings import Entry
from submissions.comparison.groups import EQUAL, leader_groups

log = logging.getLogger("leaderboard.standings")

_VERSION = 1
"""Goes up whenever the interval of the same values can move, so that those kept from before are not used."""
_TOGETHER = 64
"""Entries that share one round of draws: their means over all draws are held at once, 5 MB."""

Ends = tuple[float, float]
"""Low and high end of an interval, in the unit of the metric."""


def board_groups(
    board: Board,
    entries: Sequence[Entry],
    kept: Mapping[str, Mapping[str, FloatArray]],
    known: Mapping[str, float],
) -> tuple[dict[str, int], Mapping[str, float]]:
    """The rank groups of a board's entries: `leader_groups` over the values per query of what ranks.

    Where the mean of several metrics ranks, a query's value is the mean of its values by these. Baselines and
    entries without a rank (oracles, published rows, numbers that do not compare) stand outside: they get no
    group, and nobody's group depends on them. So does an entry without values of every term, with values of
    another number of queries than most, or whose values have another mean than its line shows. A board that
    a median or a count ranks, which is not a mean over queries, has no groups.

    Args:
        board: says what ranks.
        entries: from `standings`, of one block.
        kept: by submission id the values by metric, each of shape (n,), in the benchmark's order of queries.
        known: the tests of an earlier call, so that only new pairs are tested.

    Returns:
        The groups by submission id, and the tests behind them.
    """
    values: dict[str, FloatArray] = {}
    for entry in entries:
        if entry.rank is None:
            continue
        name = entry.submission.id
        by_metric = kept.get(name, {})
        terms = [by_metric[term] for term in board.primary_terms if term in by_metric]
        if len(terms) < len(board.primary_terms) or len(set(map(len, terms))) > 1:
            log.info("board %s: no values per query of %s", board.id, name)
            continue
        means = exact_means(terms)
        if math.isclose(exact_mean(means), entry.value, rel_tol=EQUAL, abs_tol=EQUAL):
            values[name] = means
    if not values:
        return {}, {}
    sizes = Counter(map(len, values.values()))
    most = max(sizes, key=lambda size: (sizes[size], size))
    values = {name: each for name, each in values.items() if len(each) == most}
    higher = board.primary_direction == "higher"
    groups = leader_groups(list(values.values()), higher=higher, key=board.benchmark, known=known)
    return dict(zip(values, groups.group, strict=True)), groups.tests


@dataclass(frozen=True)
class _Values:
    """What each query adds to an entry's main value, benchmark by benchmark.

    Args:
        benchmarks: ids, of a suite its members'.
        parts: values per query, an array a benchmark.
    """

    benchmarks: tuple[str, ...]
    parts: tuple[FloatArray, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(map(len, self.parts))

    def name(self, metric: str) -> str:
        """Names what the interval depends on."""
        how = f"{_VERSION} {DRAWS} {SEED} {LEVEL} {metric} {self.benchmarks} {self.sizes}".encode()
        digest = hashlib.sha256(how)
        for part in self.parts:
            digest.update(np.ascontiguousarray(part + 0.0, dtype="<f8").tobytes())
        return digest.hexdigest()


def opened(packed: bytes | None, terms: Sequence[str] | None = None) -> dict[str, FloatArray]:
    """The values per query by metric that the store keeps of an entry; empty where they cannot be read.

    Args:
        packed: an `.npz`, as `leaderboard.queue.judging.write_values` writes it, or None.
        terms: metrics that are wanted, of a suite's members too; None for all.
    """
    if packed is None:
        return {}
    begin = None if terms is None else tuple(member_metric(term) for term in terms)
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
            names = [name for name in arrays.files if not name.startswith(LISTS)]
            found = {name: arrays[name] for name in names if begin is None or name.startswith(begin)}
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile):
        return {}
    flat = {name: each for name, each in found.items() if each.dtype == np.float64 and each.ndim == 1}
    return {name: each for name, each in flat.items() if len(each) and np.isfinite(each).all()}


def member_values(
    board: Board, kept: Mapping[str, FloatArray], scores: Mapping[str, Any], metric: str
) -> list[FloatArray] | None:
    """Values a query of a metric, an array a benchmark, or None where the store does not hold them.

    Of a suite the members' own; entries that were judged by an earlier version have only the weighted values
    behind each other, from which the members' are found again by each member's number of queries.

    Args:
        board: the board.
        kept: from `opened`.
        scores: the entry's score report as JSON values.
        metric: printed name of a metric, not of a mean of several.
    """
    if not board.takes_bundles:
        return [kept[metric]] if metric in kept else None
    own = [kept.get(f"{member_metric(metric)}@{member}") for member in board.benchmarks]
    found = [each for each in own if each is not None]
    if len(found) == len(own):
        return found
    sizes = [int(run["n"]) for run in scores.get("runs", ())]
    joined = kept.get(metric)
    if joined is None or len(sizes) != len(board.benchmarks) or len(joined) != sum(sizes) or 0 in sizes:
        return None
    factors = share_factors(member_shares(metric, sizes), sizes)
    parts = np.split(joined, np.cumsum(sizes)[:-1])
    return [part / factor for part, factor in zip(parts, factors, strict=True)]


def main_intervals(
    board: Board,
    entries: Sequence[Entry],
    kept: Mapping[str, Mapping[str, FloatArray]],
    known: Mapping[str, Ends],
) -> tuple[dict[str, Ends], dict[str, Ends]]:
    """The 95 % bootstrap intervals of entries' main values.

    The number of an entry is sum_j w_j * (1/n_j) * sum_i v_ij over the benchmarks j of its board, and
    `submissions.scoring.intervals` says how it is drawn anew: draws, seed and keys are the same here. An
    entry has none where a median or a count ranks, or where its values are not kept or have another mean
    than its line shows.

    Args:
        board: says what ranks.
        entries: from `standings`, whether they have a rank or not.
        kept: by submission id the values per query by metric, from `opened`.
        known: intervals by what they depend on, of an earlier call: these are not drawn again.

    Returns:
        The intervals by submission id, and those of this call by what they depend on.
    """
    if any(term in NO_MEANS for term in board.primary_terms):
        return {}, {}
    names: dict[str, str] = {}
    wanted: dict[str, _Values] = {}
    for entry in entries:
        values = _main_values(board, entry, kept.get(entry.submission.id, {}))
        if values is not None:
            name = names[entry.submission.id] = values.name(board.primary)
            if name not in known:
                wanted.setdefault(name, values)
    made = {name: known[name] for name in names.values() if name in known}
    for together in _alike(wanted):
        made |= _drawn(board.primary, {name: wanted[name] for name in together})
    return {submission: made[name] for submission, name in names.items()}, made


def _main_values(board: Board, entry: Entry, kept: Mapping[str, FloatArray]) -> _Values | None:
    scores = entry.submission.scores or {}
    found = [member_values(board, kept, scores, term) for term in board.primary_terms]
    terms = [each for each in found if each is not None]
    by_benchmark = list(zip(*terms, strict=True))
    if len(terms) < len(found) or any(len(set(map(len, each))) > 1 for each in by_benchmark):
        return None
    parts = tuple(exact_means(list(each)) for each in by_benchmark)
    shares = member_shares(board.primary, list(map(len, parts)))
    means = [share * exact_mean(part) for share, part in zip(shares, parts, strict=True)]
    if not math.isclose(exact_sums(means).item(), entry.value, rel_tol=EQUAL, abs_tol=EQUAL):
        return None
    return _Values(board.benchmarks, parts)


def _alike(wanted: Mapping[str, _Values]) -> Iterator[list[str]]:
    """Entries that share their draws, some at a time."""
    by_sizes = defaultdict(list)
    for name, values in wanted.items():
        by_sizes[values.sizes].append(name)
    for names in by_sizes.values():
        for start in range(0, len(names), _TOGETHER):
            yield names[start : start + _TOGETHER]


def _drawn(metric: str, values: Mapping[str, _Values]) -> dict[str, Ends]:
    first = next(iter(values.values()))
    columns = [
        np.stack(parts, axis=1) for parts in zip(*(each.parts for each in values.values()), strict=True)
    ]
    weights = np.repeat(np.array(member_shares(metric, first.sizes))[:, None], len(values), axis=1)
    low, high = percentile_interval(bootstrapped_means(first.benchmarks, columns, weights))
    return dict(zip(values, zip(low.tolist(), high.tolist(), strict=True), strict=True))
