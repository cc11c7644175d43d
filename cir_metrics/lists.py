"""Several metrics over rankings that are lists of ids, as users and the evaluate modules hand them in.

Rankings and references are joined by query, checked, brought into one spelling of the ids and coded once (a
set look-up a place); `cir_metrics.evaluation` does the rest. References are dicts as `cir_metrics.references`
makes them. Unlike in the evaluate modules an empty ranking is allowed here and is a miss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from cir_metrics.catalogue import METRICS, check_variant
from cir_metrics.errors import InputError
from cir_metrics.evaluation import (
    CodedQueries,
    CodedSessions,
    Results,
    Wanted,
    evaluate_coded,
    first_ranks,
    mark_ids,
    parse_wanted,
)
from cir_metrics.inputs import Check, check_inputs, check_ranking, check_session
from cir_metrics.sums import UNLISTED, IntArray

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
        rankings: image ids, best first, one list a query; an empty list is a miss. A data frame or a series
            whose index holds the query ids is brought into the references' order. None where only metrics
            of the subset are wanted.
        references: one dict (or row of a dataset or a data frame, whose index holds the query ids where no
            column does) a query, aligned with `rankings` where one of the two says no query ids, with what
            the metrics need: `target` for recall, `target`, `reference` and `subset` for recall_subset and
            map_subset, `positives` for map, pnr_map and mean_rank, `negatives` for pnr_map.
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
    of_subset = {name for name, _ in wanted if METRICS[name].reads_subset}
    of_gallery = {name for name, _ in wanted} - of_subset
    given: dict[str, tuple[Any, Check]] = {}
    if rankings is not None:
        given["rankings"] = rankings, partial(check_ranking, among="gallery" if of_gallery else "")
    elif of_gallery:
        raise InputError(f"no rankings, which {min(of_gallery)} needs. Fix: pass rankings.")
    if of_subset:
        if subset_rankings is None:
            raise InputError(f"{max(of_subset)} ranks the subset on its own. Fix: pass subset_rankings.")
        given["subset_rankings"] = subset_rankings, partial(check_ranking, among="subset")
    inputs = check_inputs(references, _fields(wanted), given)
    if of_gallery:
        inputs = inputs.in_known_ids("rankings")
    inputs, _ = inputs.once()

    checked, lists = inputs.references, inputs.columns["rankings"] if of_gallery else []
    masks = {}
    for field in _MASKS.keys() & _fields(wanted) if of_gallery else ():
        images = [(row[field],) if field == "target" else row[field] for row in checked]
        [masks[_MASKS[field]]] = mark_ids(lists, [images], _depth(wanted, lists))
    subset_ranks = None
    if of_subset:
        in_subset = inputs.columns["subset_rankings"]
        [target] = mark_ids(in_subset, [[(row["target"],) for row in checked]], max(map(len, in_subset)))
        subset_ranks = first_ranks(target)
    coded = CodedQueries(
        n=len(checked),
        list_lengths=_lengths(lists) if of_gallery else None,
        n_positives=_lengths([row["positives"] for row in checked]) if "positive" in masks else None,
        subset_ranks=subset_ranks,
        **masks,
    )
    return evaluate_coded(wanted, coded, variants)


def evaluate_multi_turn(
    metrics: Sequence[str],
    rankings: Sequence[Sequence[Sequence[str]]],
    references: Sequence[Mapping[str, Any]],
) -> Results:
    """Values of several metrics over sessions of rankings.

    Args:
        metrics: printed names: `hits@K`, `final_recall@K`, `final_mrr@K`, `hits_auc@K`, `turn_recall@K`,
            `mean_rank` (at the last turn).
        rankings: one list a session of one ranking a turn (image ids, best first); an empty ranking is a
            miss. Data frames as in `evaluate_single_turn`.
        references: one dict (or dataset row) a session, aligned with `rankings`, with `positives`, for
            turn_recall `turn_targets`, one a turn; where it has `num_turns` too, the session must have that
            many rankings.

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
    inputs = check_inputs(references, _fields(wanted), {"rankings": (rankings, check_session)})
    inputs, _ = inputs.in_known_ids("rankings", by_turn=True).once()
    sessions = inputs.columns["rankings"]
    num_turns = _lengths(sessions)
    turns = [turn for turns in sessions for turn in turns]
    taken = np.arange(int(num_turns.max())) < num_turns[:, None]
    list_lengths = np.zeros(taken.shape, dtype=np.int64)
    list_lengths[taken] = _lengths(turns)

    def ranked(images: Sequence[Sequence[str]]) -> IntArray:
        ranks = np.full(taken.shape, UNLISTED)
        ranks[taken] = first_ranks(*mark_ids(turns, [images], _depth(wanted, turns)))
        return ranks

    fields, pairs = _fields(wanted), list(zip(inputs.references, sessions, strict=True))
    of_session = [row.get("positives", ()) for row, rankings in pairs for _ in rankings]
    of_turn = [[target] for row, _ in pairs for target in row.get("turn_targets", ())]
    turn_ranks = ranked(of_turn) if "turn_targets" in fields else None
    return evaluate_coded(wanted, CodedSessions(ranked(of_session), list_lengths, num_turns, turn_ranks))


def _fields(wanted: Wanted) -> list[str]:
    """What the metrics need of a reference."""
    return list(dict.fromkeys(each for name, _ in wanted for each in METRICS[name].fields))


def _depth(wanted: Wanted, rankings: Sequence[Sequence[str]]) -> int:
    """Places to look at: the largest cutoff, or all where a metric has none."""
    longest = max(map(len, rankings))
    return min(longest, max(longest if k is None else k for _, k in wanted))


def _lengths(lists: Sequence[Sequence[Any]]) -> IntArray:
    return np.fromiter(map(len, lists), np.int64, len(lists))
