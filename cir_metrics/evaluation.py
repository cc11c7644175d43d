"""Several metrics over one set of rankings: what scoring uses.

Rankings are coded once (a set look-up a place) and every measure is then a numpy expression. References are
dicts as `cir_metrics.references` makes them. Unlike in the evaluate modules an empty ranking is allowed here
and is a miss, because `cir score --allow-missing` must count the queries that a file leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cir_metrics import kernels
from cir_metrics.catalogue import METRICS, check_variant, parse_metric
from cir_metrics.errors import InputError
from cir_metrics.inputs import (
    Reference,
    check_ids,
    check_reference,
    check_same_length,
    check_subset_ranking,
    check_turn_count,
    check_turns,
)


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
    ranks: kernels.IntArray | None = field(default=None, repr=False)
    list_lengths: kernels.IntArray | None = field(default=None, repr=False)
    num_turns: kernels.IntArray | None = field(default=None, repr=False)
    subset_ranks: kernels.IntArray | None = field(default=None, repr=False)


def evaluate_single_turn(
    metrics: Sequence[str],
    rankings: Sequence[Sequence[str]] | None,
    references: Sequence[Mapping[str, Any]],
    *,
    subset_rankings: Sequence[Sequence[str]] | None = None,
    variants: Mapping[str, str] | None = None,
) -> Results:
    """Values of several metrics over rankings of a gallery.

    Args:
        metrics: printed names: `recall@K`, `map@K`, `pnr_map@K`, `recall_subset@K`, `map_subset@K`,
            `mean_rank`.
        rankings: image ids, best first, one list a query; an empty list is a miss. None where only metrics of
            the subset are wanted.
        references: one dict (or dataset row) a query, aligned with `rankings`, with what the metrics need:
            `target` for recall, `target`, `reference` and `subset` for recall_subset and map_subset,
            `positives` for map, pnr_map and mean_rank, `negatives` for pnr_map.
        subset_rankings: rankings of the subset's other members, needed by recall_subset and map_subset alone.
        variants: module name -> variant, such as `{"pnr_map": "released_code"}`; default: the paper's
            definition.

    Returns:
        Values and per-query values under the names of DESIGN section 6, such as `recall@5`. `mean_rank` also
        gives `median_rank` and `censored`. There an unlisted target has list length + 1, and an empty list
        counts as one of the greatest length among `rankings`.

    Raises:
        UnknownNameError: a metric that does not exist.
        InputError: a multi-turn metric, malformed rankings or references, a subset metric without subset
            rankings; the message names position and value.

    Example:
        >>> references = [{"target": "b"}, {"target": "c"}]
        >>> evaluate_single_turn(["recall@1", "recall@2"], [["a", "b"], ["c"]], references).values
        {'recall@1': 0.5, 'recall@2': 1.0}
    """
    wanted = _parse(metrics, "single_turn")
    variants = {name: check_variant(name, variant) for name, variant in (variants or {}).items()}
    names = {name for name, _ in wanted}
    of_subset = {name for name in names if METRICS[name].reads_subset}
    of_gallery = names - of_subset
    if rankings is None:
        if of_gallery:
            raise InputError(f"no rankings, which {min(of_gallery)} needs. Fix: pass rankings.")
        rankings = [()] * len(references)
    check_same_length(rankings, references, "rankings")
    lists = [
        check_ids(each, f"rankings[{q}]", what="ranking", allow_empty=True) for q, each in enumerate(rankings)
    ]
    checked = _check_references(references, wanted)

    coded = _Coded(lists, checked, depth=_depth(wanted, lists))
    subset_ranks = _subset_ranks(subset_rankings, checked, max(of_subset)) if of_subset else None
    results = _Collector()
    for name, k in wanted:
        if name == "recall_at_k" and k is not None:
            results.add(f"recall@{k}", kernels.within(coded.target_ranks(), k))
        elif name == "recall_subset" and k is not None and subset_ranks is not None:
            results.add(f"recall_subset@{k}", kernels.within(subset_ranks, k))
        elif name == "map_subset" and k is not None and subset_ranks is not None:
            results.add(f"map_subset@{k}", kernels.reciprocal_within(subset_ranks, k))
        elif name == "map_at_k" and k is not None:
            results.add(f"map@{k}", kernels.average_precision(coded.positive(), coded.n_positives(), k))
        elif name == "pnr_map" and k is not None:
            variant: Any = variants.get(name, "equation")
            values = kernels.pnr_average_precision(
                coded.positive(), coded.negative(), coded.n_positives(), k, variant
            )
            results.add(f"pnr_map@{k}", values)
        else:
            results.add_ranks(kernels.first_ranks(coded.positive()), _lengths(lists))
    return results.done(
        len(lists),
        ranks=coded.best_ranks() if of_gallery else None,
        list_lengths=_lengths(lists) if of_gallery else None,
        subset_ranks=subset_ranks,
    )


def evaluate_multi_turn(
    metrics: Sequence[str],
    rankings: Sequence[Sequence[Sequence[str]]],
    references: Sequence[Mapping[str, Any]],
) -> Results:
    """Values of several metrics over sessions of rankings.

    Args:
        metrics: printed names: `hits@K`, `final_recall@K`, `hits_auc@K`, `mean_rank` (at the last turn).
        rankings: one list a session of one ranking a turn (image ids, best first); an empty ranking is a
            miss.
        references: one dict (or dataset row) a session, aligned with `rankings`, with `positives`; where it
            has `num_turns` too, the session must have that many rankings.

    Returns:
        Values and per-session values under the names of DESIGN section 6: `hits@10@turn1` up to the longest
        session, `final_recall@10`, `hits_auc@10`, `mean_rank` with `median_rank` and `censored`.

    Raises:
        UnknownNameError: a metric that does not exist.
        InputError: a single-turn metric, malformed rankings or references; the message names position and
            value.

    Example:
        >>> evaluate_multi_turn(["hits@1"], [[["a", "b"], ["b", "a"]]], [{"positives": ["b"]}]).values
        {'hits@1@turn1': 0.0, 'hits@1@turn2': 1.0}
    """
    wanted = _parse(metrics, "multi_turn")
    check_same_length(rankings, references, "rankings")
    sessions = [check_turns(each, f"rankings[{s}]", allow_empty=True) for s, each in enumerate(rankings)]
    checked = _check_references(references, wanted)
    for s, (session, reference) in enumerate(zip(sessions, checked, strict=True)):
        check_turn_count(session, reference, f"rankings[{s}]")

    num_turns = _lengths(sessions)
    ranks = _ranks_by_turn(
        sessions, checked, num_turns, _depth(wanted, [turn for turns in sessions for turn in turns])
    )
    results = _Collector()
    for name, k in wanted:
        if name == "hits_at_k" and k is not None:
            for turn, hits in enumerate(kernels.hits_by_turn(ranks, num_turns, k).T, start=1):
                results.add(f"hits@{k}@turn{turn}", hits)
        elif name == "final_recall" and k is not None:
            results.add(f"final_recall@{k}", kernels.within(kernels.final_ranks(ranks, num_turns), k))
        elif name == "hits_auc" and k is not None:
            results.add(f"hits_auc@{k}", kernels.area_under_hits(kernels.hits_by_turn(ranks, num_turns, k)))
        else:
            results.add_ranks(
                kernels.final_ranks(ranks, num_turns), _lengths([turns[-1] for turns in sessions])
            )
    list_lengths = np.zeros_like(ranks)
    list_lengths[np.arange(ranks.shape[1]) < num_turns[:, None]] = _lengths(
        [turn for turns in sessions for turn in turns]
    )
    return results.done(len(sessions), ranks=ranks, list_lengths=list_lengths, num_turns=num_turns)


class _Coded:
    """Rankings of a gallery coded against references, each coding made when it is first asked for."""

    def __init__(
        self, rankings: Sequence[Sequence[str]], references: Sequence[Reference], depth: int
    ) -> None:
        self._rankings, self._references, self._depth = rankings, references, depth
        self._masks: dict[str, kernels.BoolArray] = {}

    def target_ranks(self) -> kernels.IntArray:
        if "target" not in self._masks:
            targets = [(reference["target"],) for reference in self._references]
            self._masks["target"] = kernels.encode(self._rankings, targets, self._depth)
        return kernels.first_ranks(self._masks["target"])

    def best_ranks(self) -> kernels.IntArray:
        """Rank of the best positive, or of the target where that is all that was asked for."""
        known = "positives" in self._references[0]
        return kernels.first_ranks(self.positive()) if known else self.target_ranks()

    def positive(self) -> kernels.BoolArray:
        return self._mask("positives")

    def negative(self) -> kernels.BoolArray:
        return self._mask("negatives")

    def n_positives(self) -> kernels.IntArray:
        return _lengths([reference["positives"] for reference in self._references])

    def _mask(self, name: str) -> kernels.BoolArray:
        if name not in self._masks:
            relevant = [reference[name] for reference in self._references]
            self._masks[name] = kernels.encode(self._rankings, relevant, self._depth)
        return self._masks[name]


class _Collector:
    """Gathers values under their printed names."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._per_query: dict[str, NDArray[Any]] = {}

    def add(self, name: str, values: kernels.FloatArray) -> None:
        self._values[name] = float(np.mean(values))
        self._per_query[name] = values

    def add_ranks(self, ranks: kernels.IntArray, list_lengths: kernels.IntArray) -> None:
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

    def done(self, n: int, **evidence: kernels.IntArray | None) -> Results:
        return Results(values=self._values, per_query=self._per_query, n=n, **evidence)


def _parse(metrics: Iterable[str], protocol: str) -> list[tuple[str, int | None]]:
    if isinstance(metrics, str):
        raise InputError(f"metrics={metrics!r} is one name. Fix: pass a list, [{metrics!r}].")
    wanted = list(dict.fromkeys(parse_metric(printed) for printed in metrics))
    if not wanted:
        raise InputError("metrics is empty. Fix: name at least one metric, such as 'recall@10'.")
    for name, _ in wanted:
        if protocol not in METRICS[name].protocols:
            takes, has = ("sessions", "queries") if protocol == "single_turn" else ("queries", "sessions")
            raise InputError(
                f"{name} is a metric of {takes}, and this benchmark has {has}. Fix: leave it out."
            )
    return wanted


def _check_references(
    references: Sequence[Mapping[str, Any]], wanted: Sequence[tuple[str, int | None]]
) -> list[Reference]:
    fields = list(dict.fromkeys(each for name, _ in wanted for each in METRICS[name].fields))
    return [check_reference(reference, f"references[{q}]", fields) for q, reference in enumerate(references)]


def _depth(wanted: Sequence[tuple[str, int | None]], rankings: Sequence[Sequence[str]]) -> int:
    """Places to look at: the largest cutoff, or all where a metric has none."""
    longest = max(map(len, rankings))
    cutoffs = [k for _, k in wanted]
    return longest if None in cutoffs else min(longest, max(k for k in cutoffs if k is not None))


def _lengths(lists: Sequence[Sequence[Any]]) -> kernels.IntArray:
    return np.fromiter(map(len, lists), np.int64, len(lists))


def _subset_ranks(
    rankings: Sequence[Sequence[str]] | None, references: Sequence[Reference], metric: str
) -> kernels.IntArray:
    if rankings is None:
        raise InputError(f"{metric} ranks the subset on its own. Fix: pass subset_rankings.")
    check_same_length(rankings, references, "subset_rankings")
    lists = []
    for q, (ranking, reference) in enumerate(zip(rankings, references, strict=True)):
        ids = check_ids(ranking, f"subset_rankings[{q}]", what="ranking", allow_empty=True)
        check_subset_ranking(ids, reference, f"subset_rankings[{q}]")
        lists.append(ids)
    targets = [(reference["target"],) for reference in references]
    return kernels.first_ranks(kernels.encode(lists, targets, max(map(len, lists))))


def _ranks_by_turn(
    sessions: Sequence[Sequence[Sequence[str]]],
    references: Sequence[Reference],
    num_turns: kernels.IntArray,
    depth: int,
) -> kernels.IntArray:
    """Best rank of a positive at each turn, (sessions, longest); `UNLISTED` behind a session's last turn."""
    rankings = [turn for turns in sessions for turn in turns]
    relevant = [references[s]["positives"] for s, turns in enumerate(sessions) for _ in turns]
    ranks = np.full((len(sessions), int(num_turns.max())), kernels.UNLISTED, dtype=np.int64)
    ranks[np.arange(ranks.shape[1]) < num_turns[:, None]] = kernels.first_ranks(
        kernels.encode(rankings, relevant, depth)
    )
    return ranks
