"""Several metrics over rankings that are coded already: what every way of scoring ends in.

Whoever holds rankings as lists codes them with `kernels.encode` (`evaluation` does); whoever holds them as
numbers marks them with `mark`, which looks at all queries at once. These functions trust their input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cir_metrics import kernels
from cir_metrics.errors import InputError
from cir_metrics.kernels import BoolArray, FloatArray, IntArray, PnrVariant
from cir_metrics.sums import exact_mean

Wanted = Sequence[tuple[str, int | None]]
"""Module names and cutoffs, as `catalogue.parse_metric` gives them."""

_TABLE = 2**22
"""Entries of the table that `mark` writes into at most, unless one query alone needs more."""


@dataclass(frozen=True)
class Results:
    """Metric values over a benchmark.

    Args:
        values: name -> mean over queries, a fraction (`mean_rank` and `median_rank`: ranks; `censored`: a
            count).
        per_query: name -> one value a query or session, in the order given, where such a value exists.
        n: number of queries or sessions.
        ranks: rank of the best target, `kernels.UNLISTED` where none is listed: shape (n_queries,), or
            (n_sessions, max_turns), where what lies behind a session's last turn is not to be read. None
            where the gallery was not ranked.
        list_lengths: images in each ranking, of the same shape.
        num_turns: turns of each session; None for queries.
        subset_ranks: rank of the target in its subset, shape (n_queries,), where the subsets were ranked.
    """

    values: dict[str, float]
    per_query: dict[str, NDArray[Any]] = field(repr=False)
    n: int
    ranks: IntArray | None = field(default=None, repr=False)
    list_lengths: IntArray | None = field(default=None, repr=False)
    num_turns: IntArray | None = field(default=None, repr=False)
    subset_ranks: IntArray | None = field(default=None, repr=False)


@dataclass(frozen=True)
class CodedQueries:
    """Rankings of queries, a row each; column j-1 is rank j. What no metric asks for may be None.

    Args:
        n: number of queries.
        list_lengths: images in each ranking, shape (n,); None where the gallery was not ranked.
        target: which places hold the single target, shape (n, depth).
        positive: which places hold a positive, same shape.
        negative: which places hold a hard negative, same shape.
        n_positives: number of positives of each query, listed or not, shape (n,).
        subset_ranks: rank of the target in its subset, `kernels.UNLISTED` where it is not listed, shape (n,).
    """

    n: int
    list_lengths: IntArray | None = None
    target: BoolArray | None = None
    positive: BoolArray | None = None
    negative: BoolArray | None = None
    n_positives: IntArray | None = None
    subset_ranks: IntArray | None = None

    def best_ranks(self) -> IntArray | None:
        """Rank of the best positive, or of the target where that is all that is known."""
        mask = self.positive if self.positive is not None else self.target
        return None if mask is None else kernels.first_ranks(mask)


@dataclass(frozen=True)
class CodedSessions:
    """Rankings of sessions, a row each; column l-1 is turn l.

    Args:
        ranks: rank of the best target at each turn, `kernels.UNLISTED` where none is listed, shape
            (n, max_turns); what lies behind a session's last turn is not read.
        list_lengths: images in each ranking, same shape.
        num_turns: turns of each session, shape (n,).
    """

    ranks: IntArray
    list_lengths: IntArray
    num_turns: IntArray


def values_of_queries(wanted: Wanted, coded: CodedQueries, variants: Mapping[str, str]) -> Results:
    """Values of single-turn metrics.

    Args:
        wanted: metrics, each with what it needs in `coded`.
        coded: the rankings.
        variants: module name -> variant, where it is not the default.
    """
    results = _Collector()
    for name, k in wanted:
        if name == "mean_rank":
            results.add_ranks(_needed(coded.best_ranks(), name), _needed(coded.list_lengths, name))
        elif k is not None:
            printed, values = _of_queries(name, k, coded, variants)
            results.add(f"{printed}@{k}", values)
    return results.done(
        coded.n,
        ranks=coded.best_ranks(),
        list_lengths=coded.list_lengths,
        subset_ranks=coded.subset_ranks,
    )


def _of_queries(
    name: str, k: int, coded: CodedQueries, variants: Mapping[str, str]
) -> tuple[str, FloatArray]:
    if name == "recall_at_k":
        return "recall", kernels.within(kernels.first_ranks(_needed(coded.target, name)), k)
    if name == "recall_subset":
        return "recall_subset", kernels.within(_needed(coded.subset_ranks, name), k)
    if name == "map_subset":
        return "map_subset", kernels.reciprocal_within(_needed(coded.subset_ranks, name), k)
    positive, n_positives = _needed(coded.positive, name), _needed(coded.n_positives, name)
    if name == "map_at_k":
        return "map", kernels.average_precision(positive, n_positives, k)
    negative, variant = _needed(coded.negative, name), cast(PnrVariant, variants.get(name, "equation"))
    return "pnr_map", kernels.pnr_average_precision(positive, negative, n_positives, k, variant)


def values_of_sessions(wanted: Wanted, coded: CodedSessions) -> Results:
    """Values of multi-turn metrics.

    Args:
        wanted: metrics.
        coded: the rankings.
    """
    ranks, num_turns = coded.ranks, coded.num_turns
    results = _Collector()
    for name, k in wanted:
        if name == "hits_at_k" and k is not None:
            for turn, hits in enumerate(kernels.hits_by_turn(ranks, num_turns, k).T, start=1):
                results.add(f"hits@{k}@turn{turn}", hits)
        elif name == "final_recall" and k is not None:
            results.add(f"final_recall@{k}", kernels.within(kernels.final_ranks(ranks, num_turns), k))
        elif name == "final_mrr" and k is not None:
            results.add(f"final_mrr@{k}", kernels.reciprocal_within(kernels.final_ranks(ranks, num_turns), k))
        elif name == "hits_auc" and k is not None:
            results.add(f"hits_auc@{k}", kernels.area_under_hits(kernels.hits_by_turn(ranks, num_turns, k)))
        else:
            lengths = kernels.final_ranks(coded.list_lengths, num_turns)
            results.add_ranks(kernels.final_ranks(ranks, num_turns), lengths)
    return results.done(len(num_turns), ranks=ranks, list_lengths=coded.list_lengths, num_turns=num_turns)


def mark(
    codes: NDArray[np.int32], groups: Sequence[tuple[IntArray, NDArray[np.int32]]], n_images: int
) -> list[BoolArray]:
    """Which places of each ranking hold an image of each group, all queries at once.

    Args:
        codes: rankings as numbers of images, -1 where a place is empty, shape (n_queries, depth).
        groups: by group where each query's images start (shape (n_queries + 1,)) and the numbers of the
            images (-1 for one that no ranking holds); eight groups at most.
        n_images: how many images are numbered.

    Returns:
        One mask a group, shape (n_queries, depth).

    Example:
        >>> codes = np.array([[0, 1], [2, -1]], dtype=np.int32)
        >>> positives = np.array([0, 1, 3]), np.array([1, 0, 2], dtype=np.int32)
        >>> mark(codes, [positives], n_images=3)[0].tolist()
        [[False, True], [True, False]]
    """
    # A table of queries by images, a block of queries at a time, is written, read and wiped: quicker than
    # searching, as what a query needs lies together. Entry 0 of a row is for places that hold nothing, and a
    # group is a bit.
    width = n_images + 1
    rows = min(max(1, _TABLE // width), max(1, len(codes)))
    table = np.zeros(rows * width, dtype=np.uint8)
    bases = np.arange(rows, dtype=np.int64) * width + 1
    found = np.zeros(codes.shape, dtype=np.uint8)
    for start in range(0, len(codes), rows):
        stop = min(start + rows, len(codes))
        written = []
        for bit, (offsets, members) in enumerate(groups):
            own = members[offsets[start] : offsets[stop]]
            entries = own + np.repeat(bases[: stop - start], np.diff(offsets[start : stop + 1]))
            table[entries] |= (own >= 0).astype(np.uint8) << bit
            written.append(entries)
        found[start:stop] = table[codes[start:stop] + bases[: stop - start, None]]
        for entries in written:
            table[entries] = 0
    return [(found & (1 << bit)) > 0 for bit in range(len(groups))]


def _needed(value: Any, name: str) -> Any:
    if value is None:
        raise InputError(f"{name} lacks the coded rankings that it is computed from. Fix: code them.")
    return value


class _Collector:
    """Gathers values under their printed names."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._per_query: dict[str, NDArray[Any]] = {}

    def add(self, name: str, values: FloatArray) -> None:
        self._values[name] = exact_mean(values)
        self._per_query[name] = values

    def add_ranks(self, ranks: IntArray, list_lengths: IntArray) -> None:
        longest = int(list_lengths.max())
        if longest == 0:
            raise InputError(
                "mean_rank: every ranking is empty, so a miss has no rank. Fix: rank at least one query."
            )
        censored_ranks, unlisted = kernels.censor(ranks, np.where(list_lengths == 0, longest, list_lengths))
        self.add("mean_rank", censored_ranks.astype(np.float64))
        self._values["median_rank"] = float(np.median(censored_ranks))
        self._values["censored"] = int(unlisted.sum())
        self._per_query["censored"] = unlisted.astype(np.int64)

    def done(self, n: int, **evidence: IntArray | None) -> Results:
        return Results(values=self._values, per_query=self._per_query, n=n, **evidence)
