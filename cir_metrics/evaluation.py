"""Several metrics over one set of rankings that are lists of ids: what the evaluate modules go through.

Rankings are coded once (a set look-up a place) and every measure is then a numpy expression. References are
dicts as `cir_metrics.references` makes them. Unlike in the evaluate modules an empty ranking is allowed here
and is a miss, because `cir score --allow-missing` must count the queries that a file leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cir_metrics import kernels
from cir_metrics.catalogue import METRICS, check_variant, parse_metric
from cir_metrics.coded import CodedQueries, CodedSessions, Results, values_of_queries, values_of_sessions
from cir_metrics.errors import InputError
from cir_metrics.ground_truth import (
    Reference,
    check_reference,
    check_subset_ranking,
    check_turn_count,
    is_clean,
)
from cir_metrics.inputs import check_ids, check_same_length, check_turns

__all__ = ["Results", "evaluate_multi_turn", "evaluate_single_turn", "parse_wanted"]

_MASKS = {"target": "target", "positives": "positive", "negatives": "negative"}
"""What a reference holds -> the mask that says which places hold it."""


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
    wanted = parse_wanted(metrics, "single_turn")
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

    masks = {}
    held = [each for each in _MASKS if of_gallery and each in _fields(wanted)]
    if held:
        groups = [[(row[each],) if each == "target" else row[each] for row in checked] for each in held]
        coded = kernels.encode_groups(lists, groups, _depth(wanted, lists))
        masks = {_MASKS[each]: mask for each, mask in zip(held, coded, strict=True)}
    coded_queries = CodedQueries(
        n=len(lists),
        list_lengths=_lengths(lists) if of_gallery else None,
        n_positives=_lengths([row["positives"] for row in checked]) if "positive" in masks else None,
        subset_ranks=_subset_ranks(subset_rankings, checked, max(of_subset)) if of_subset else None,
        **masks,
    )
    return values_of_queries(wanted, coded_queries, variants)


def evaluate_multi_turn(
    metrics: Sequence[str],
    rankings: Sequence[Sequence[Sequence[str]]],
    references: Sequence[Mapping[str, Any]],
) -> Results:
    """Values of several metrics over sessions of rankings.

    Args:
        metrics: printed names: `hits@K`, `final_recall@K`, `final_mrr@K`, `hits_auc@K`, `mean_rank` (at
            the last turn).
        rankings: one list a session of one ranking a turn (image ids, best first); an empty ranking is a
            miss.
        references: one dict (or dataset row) a session, aligned with `rankings`, with `positives`; where it
            has `num_turns` too, the session must have that many rankings.

    Returns:
        Values and per-session values under the names of DESIGN section 6: `hits@10@turn1` up to the longest
        session, `final_recall@10`, `final_mrr@50`, `hits_auc@10`, `mean_rank` with `median_rank` and
        `censored`.

    Raises:
        UnknownNameError: a metric that does not exist.
        InputError: a single-turn metric, malformed rankings or references; the message names position and
            value.

    Example:
        >>> evaluate_multi_turn(["hits@1"], [[["a", "b"], ["b", "a"]]], [{"positives": ["b"]}]).values
        {'hits@1@turn1': 0.0, 'hits@1@turn2': 1.0}
    """
    wanted = parse_wanted(metrics, "multi_turn")
    check_same_length(rankings, references, "rankings")
    sessions = [check_turns(each, f"rankings[{s}]", allow_empty=True) for s, each in enumerate(rankings)]
    checked = _check_references(references, wanted)
    for s, (session, reference) in enumerate(zip(sessions, checked, strict=True)):
        check_turn_count(session, reference, f"rankings[{s}]")

    num_turns = _lengths(sessions)
    ranks = _ranks_by_turn(
        sessions, checked, num_turns, _depth(wanted, [turn for turns in sessions for turn in turns])
    )
    list_lengths = np.zeros_like(ranks)
    list_lengths[np.arange(ranks.shape[1]) < num_turns[:, None]] = _lengths(
        [turn for turns in sessions for turn in turns]
    )
    return values_of_sessions(wanted, CodedSessions(ranks, list_lengths, num_turns))


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
    fields = _fields(wanted)
    quick = _MASKS.keys() >= set(fields)
    return [
        reference  # type: ignore[misc]  # it is a plain dict
        if quick and is_clean(reference, fields)
        else check_reference(reference, f"references[{q}]", fields)
        for q, reference in enumerate(references)
    ]


def _fields(wanted: Sequence[tuple[str, int | None]]) -> list[str]:
    """What the metrics need of a reference."""
    return list(dict.fromkeys(each for name, _ in wanted for each in METRICS[name].fields))


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
