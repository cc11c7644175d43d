"""Rankings as numbers, and several metrics over them: boards, `cir score` and evaluate modules go here.

Rankings are coded once: which places hold which images, and at what rank a target stands. Lists of ids are
coded by `mark_ids`, rankings that are numbers already by `mark`; both give masks, and masks give ranks. The
functions of `cir_metrics.measures` make values of these. Conventions: ranks are 1-based; column j-1 of a mask
is rank j; a mask may be narrower than K (a list that ends early holds nothing further down). All of this
trusts its input: `cir_metrics.lists` checks lists of ids first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import cir_metrics.measures as measures
from cir_metrics.catalogue import METRICS, parse_metric
from cir_metrics.errors import InputError
from cir_metrics.sums import UNLISTED, BoolArray, IntArray, exact_mean, final_ranks

Wanted = Sequence[tuple[str, int | None]]
"""Module names and cutoffs, as `catalogue.parse_metric` gives them."""

_OF_SESSIONS = ("ranks", "num_turns")
_READ = {
    "recall_at_k": ("target_ranks",),
    "recall_subset": ("subset_ranks",),
    "map_subset": ("subset_ranks",),
    "map_at_k": ("positive", "n_positives"),
    "pnr_map": ("positive", "negative", "n_positives"),
    "hits_at_k": _OF_SESSIONS,
    "final_recall": _OF_SESSIONS,
    "final_mrr": _OF_SESSIONS,
    "hits_auc": _OF_SESSIONS,
    "turn_recall": ("turn_ranks", "num_turns"),
}
"""Metric with a cutoff -> what of coded rankings it is computed from, in the order of its parameters."""

_TABLE = 2**22
"""Entries of the table that `mark` writes into at most, unless one query alone needs more."""


def mark_ids(
    rankings: Sequence[Sequence[str]], groups: Sequence[Sequence[Collection[str]]], depth: int
) -> list[BoolArray]:
    """Which of the first `depth` places of each ranking hold an image of each group.

    Args:
        rankings: image ids, best first, one list a query; may be shorter than `depth`.
        groups: by group the ids of each query, aligned with `rankings`.
        depth: number of places, 0 or more.

    Returns:
        One mask a group, shape (n_queries, depth); places that a ranking does not fill are False.

    Example:
        >>> positive, negative = mark_ids([["a", "b", "c"]], [[["b"]], [["c", "x"]]], depth=3)
        >>> positive.tolist(), negative.tolist()
        ([[False, True, False]], [[False, False, True]])
    """
    masks = []
    for group in groups:
        mask = np.zeros((len(rankings), depth), dtype=np.bool_)
        for places, ranking, ids in zip(mask, rankings, group, strict=True):
            # Made by C code all the way: a generator over the places would take five times as long.
            held = list(map(frozenset(ids).__contains__, ranking[:depth]))
            places[: len(held)] = held
        masks.append(mask)
    return masks


def mark(
    codes: NDArray[np.int32], groups: Sequence[tuple[IntArray, NDArray[np.int32]]], n_images: int
) -> list[BoolArray]:
    """`mark_ids` for rankings that are numbers of images already, all queries at once.

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


def first_ranks(relevant: BoolArray) -> IntArray:
    """Rank of the first relevant image of each row, `UNLISTED` where there is none.

    Args:
        relevant: shape (n_queries, depth), from `mark_ids` or `mark`.

    Returns:
        1-based ranks, shape (n_queries,).

    Example:
        >>> first_ranks(np.array([[False, True], [False, False]])) == [2, UNLISTED]
        array([ True,  True])
    """
    if relevant.shape[1] == 0:
        return np.full(relevant.shape[0], UNLISTED, dtype=np.int64)
    ranks = np.argmax(relevant, axis=1).astype(np.int64) + 1
    return np.where(relevant.any(axis=1), ranks, UNLISTED)


def censor(ranks: IntArray, list_lengths: IntArray) -> tuple[IntArray, BoolArray]:
    """Ranks with every unlisted target put right behind its list, and which ones those are.

    Args:
        ranks: from `first_ranks`, shape (n_queries,).
        list_lengths: images in each ranking, shape (n_queries,).

    Returns:
        Ranks and a mask of the unlisted, both of shape (n_queries,).

    Example:
        >>> censor(np.array([2, UNLISTED]), np.array([50, 50]))
        (array([ 2, 51]), array([False,  True]))
    """
    unlisted = ranks == UNLISTED
    return np.where(unlisted, list_lengths + 1, ranks), unlisted


@dataclass(frozen=True)
class Results:
    """Metric values over a benchmark.

    Args:
        values: name -> mean over queries, a fraction (`mean_rank` and `median_rank`: ranks; `censored`: a
            count).
        per_query: name -> one value per query or session, in the order given, where such a value exists.
        n: number of queries or sessions.
        ranks: rank of the best target, `UNLISTED` where none is listed: shape (n_queries,), or
            (n_sessions, max_turns), where what lies behind a session's last turn is not to be read. None
            where the gallery was not ranked.
        list_lengths: images in each ranking, of the same shape.
        num_turns: turns of each session; None for queries.
        subset_ranks: rank of the target in its subset, shape (n_queries,), where the subsets were ranked.
        turn_ranks: rank of each turn's own target, shape (n_sessions, max_turns), where they were asked for.
    """

    values: dict[str, float]
    per_query: dict[str, NDArray[Any]] = field(repr=False)
    n: int
    ranks: IntArray | None = field(default=None, repr=False)
    list_lengths: IntArray | None = field(default=None, repr=False)
    num_turns: IntArray | None = field(default=None, repr=False)
    subset_ranks: IntArray | None = field(default=None, repr=False)
    turn_ranks: IntArray | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class CodedQueries:
    """Rankings of queries, a row each; column j-1 is rank j. What no metric asks for may be None.

    Args:
        n: number of queries.
        list_lengths: images in each ranking, shape (n,); None where the gallery was not ranked.
        target: which places hold the single target, shape (n, depth).
        positive: which places hold a positive, same shape.
        negative: which places hold a hard negative, same shape.
        n_positives: number of positives of each query, listed or not, shape (n,).
        subset_ranks: rank of the target in its subset, `UNLISTED` where it is not listed, shape (n,).
    """

    n: int
    list_lengths: IntArray | None = None
    target: BoolArray | None = None
    positive: BoolArray | None = None
    negative: BoolArray | None = None
    n_positives: IntArray | None = None
    subset_ranks: IntArray | None = None
    num_turns: ClassVar[None] = None
    turn_ranks: ClassVar[None] = None

    @cached_property
    def target_ranks(self) -> IntArray | None:
        """Rank of the single target, shape (n,)."""
        return None if self.target is None else first_ranks(self.target)

    @cached_property
    def ranks(self) -> IntArray | None:
        """Rank of the best positive, or of the target where that is all that is known, shape (n,)."""
        return self.target_ranks if self.positive is None else first_ranks(self.positive)


@dataclass(frozen=True, eq=False)
class CodedSessions:
    """Rankings of sessions, a row each; column l-1 is turn l.

    Args:
        ranks: rank of the best target at each turn, `UNLISTED` where none is listed, shape
            (n, max_turns); what lies behind a session's last turn is not read.
        list_lengths: images in each ranking, same shape.
        num_turns: turns of each session, shape (n,).
        turn_ranks: rank of each turn's own target, same shape as `ranks`; None where no metric asks for it.
    """

    ranks: IntArray
    list_lengths: IntArray
    num_turns: IntArray
    turn_ranks: IntArray | None = None
    subset_ranks: ClassVar[None] = None

    @property
    def n(self) -> int:
        """Number of sessions."""
        return len(self.num_turns)


def evaluate_coded(
    wanted: Wanted, coded: CodedQueries | CodedSessions, variants: Mapping[str, str] = MappingProxyType({})
) -> Results:
    """Values of several metrics over rankings that are coded already, which are trusted.

    Args:
        wanted: metrics of queries or of sessions, each with what it needs in `coded`.
        coded: the rankings.
        variants: module name -> variant, where it is not the default.

    Raises:
        InputError: `coded` lacks what a metric is computed from, or mean_rank finds every ranking empty.

    Example:
        >>> coded = CodedQueries(n=2, target=np.array([[False, True], [True, False]]))
        >>> evaluate_coded([("recall_at_k", 1)], coded).values
        {'recall@1': 0.5}
    """
    values: dict[str, float] = {}
    per_query: dict[str, NDArray[Any]] = {}
    for name, k in wanted:
        if k is None:
            _add_ranks(coded, values, per_query)
            continue
        arrays = [_needed(getattr(coded, each), name) for each in _READ[name]]
        variant = [variants[name]] if name in variants and len(METRICS[name].variants) > 1 else []
        found = getattr(measures, name).per_query(*arrays, k, *variant)
        printed = f"{METRICS[name].printed}@{k}"
        columns = {printed: found}
        if found.ndim == 2:
            columns = {f"{printed}@turn{turn}": hits for turn, hits in enumerate(found.T, start=1)}
        values |= {each: exact_mean(column) for each, column in columns.items()}
        per_query |= columns
    return Results(
        values,
        per_query,
        coded.n,
        ranks=coded.ranks,
        list_lengths=coded.list_lengths,
        num_turns=coded.num_turns,
        subset_ranks=coded.subset_ranks,
        turn_ranks=coded.turn_ranks,
    )


def _add_ranks(
    coded: CodedQueries | CodedSessions, values: dict[str, float], per_query: dict[str, NDArray[Any]]
) -> None:
    ranks, lengths = _needed(coded.ranks, "mean_rank"), _needed(coded.list_lengths, "mean_rank")
    if coded.num_turns is not None:
        ranks, lengths = final_ranks(ranks, coded.num_turns), final_ranks(lengths, coded.num_turns)
    longest = int(lengths.max())
    if longest == 0:
        raise InputError(
            "mean_rank: every ranking is empty, so a miss has no rank. Fix: rank at least one query."
        )
    ranks, unlisted = censor(ranks, np.where(lengths == 0, longest, lengths))
    values |= {
        "mean_rank": measures.mean_rank(ranks),
        "median_rank": measures.median_rank(ranks),
        "censored": int(unlisted.sum()),
    }
    per_query |= {"mean_rank": measures.mean_rank.per_query(ranks), "censored": unlisted.astype(np.int64)}


def _needed(value: Any, name: str) -> Any:
    if value is None:
        raise InputError(f"{name} lacks the coded rankings that it is computed from. Fix: code them.")
    return value


def parse_wanted(metrics: Iterable[str], protocol: str) -> list[tuple[str, int | None]]:
    """Module names and cutoffs of printed names.

    Args:
        metrics: printed names.
        protocol: `single_turn` or `multi_turn`.

    Raises:
        UnknownNameError: a metric that does not exist.
        InputError: no metric, a single name instead of a list, or a metric of the other protocol.

    Example:
        >>> parse_wanted(["recall@5", "mean_rank"], "single_turn")
        [('recall_at_k', 5), ('mean_rank', None)]
    """
    if isinstance(metrics, str):
        raise InputError(f"metrics={metrics!r} is one name. Fix: pass a list, [{metrics!r}].")
    metrics = list(metrics)
    wanted = list(dict.fromkeys(parse_metric(printed) for printed in metrics))
    for printed in metrics:
        if "@turn" in printed and not printed.startswith("hits@"):
            raise InputError(
                f"{printed!r} is a value of a dialogue's round, which only transcripts have. "
                f"Fix: write {printed.partition('@turn')[0]!r}."
            )
    if not wanted:
        raise InputError("metrics is empty. Fix: name at least one metric, such as 'recall@10'.")
    for name, _ in wanted:
        if protocol not in METRICS[name].protocols:
            takes, has = ("sessions", "queries") if protocol == "single_turn" else ("queries", "sessions")
            raise InputError(
                f"{name} is a metric of {takes}, and this benchmark has {has}. Fix: leave it out."
            )
    return wanted
