"""Several metrics over rankings that are lists of ids, as users and the evaluate modules hand them in.

Rankings and references are joined by query, checked, brought into one spelling of the ids and coded once (a
set look-up a place); `cir_metrics.evaluation` does the rest. References are dicts as `cir_metrics.references`
makes them. Unlike in the evaluate modules an empty ranking is allowed here and is a miss.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
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
from cir_metrics.ground_truth import (
    Reference,
    check_own_gallery,
    check_reference,
    check_subset_ranking,
    check_turn_count,
    ids_of,
    query_of,
)
from cir_metrics.ids import alike, answered_once, respelled, stranger, warn_of_padding
from cir_metrics.inputs import check_ids, check_turns
from cir_metrics.pairing import paired
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
    names = {name for name, _ in wanted}
    of_subset = {name for name in names if METRICS[name].reads_subset}
    of_gallery = names - of_subset
    if rankings is None:
        if of_gallery:
            raise InputError(f"no rankings, which {min(of_gallery)} needs. Fix: pass rankings.")
        rankings = [()] * len(references)
    if of_subset and subset_rankings is not None:
        rankings, subset_rankings, references = paired(
            references, rankings=rankings, subset_rankings=subset_rankings
        )
    else:
        rankings, references = paired(references, rankings=rankings)
    lists = [
        check_ids(each, f"rankings[{q}]", what="ranking", allow_empty=True) for q, each in enumerate(rankings)
    ]
    checked = _check_references(references, wanted)
    in_subset = _subset_lists(subset_rankings, checked, max(of_subset)) if of_subset else lists
    if of_gallery:
        lists = _in_known_ids(lists, checked, "rankings[{}]".format)
        lists = [
            check_own_gallery(each, checked[q], f"rankings[{q}]") if "gallery" in checked[q] else each
            for q, each in enumerate(lists)
        ]
    kept = _answered_once(references, [lists, in_subset], checked)
    lists, checked = [lists[q] for q in kept], [checked[q] for q in kept]
    in_subset = [in_subset[q] for q in kept]

    masks = {}
    held = [each for each in _MASKS if of_gallery and each in _fields(wanted)]
    if held:
        groups = [[(row[each],) if each == "target" else row[each] for row in checked] for each in held]
        marked = mark_ids(lists, groups, _depth(wanted, lists))
        masks = {_MASKS[each]: mask for each, mask in zip(held, marked, strict=True)}
    coded = CodedQueries(
        n=len(lists),
        list_lengths=_lengths(lists) if of_gallery else None,
        n_positives=_lengths([row["positives"] for row in checked]) if "positive" in masks else None,
        subset_ranks=_subset_ranks(in_subset, checked) if of_subset else None,
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
        metrics: printed names: `hits@K`, `final_recall@K`, `final_mrr@K`, `hits_auc@K`, `mean_rank` (at
            the last turn).
        rankings: one list a session of one ranking a turn (image ids, best first); an empty ranking is a
            miss. Data frames as in `evaluate_single_turn`.
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
    rankings, references = paired(references, rankings=rankings)
    sessions = [check_turns(each, f"rankings[{s}]", allow_empty=True) for s, each in enumerate(rankings)]
    checked = _check_references(references, wanted)
    for s, (session, reference) in enumerate(zip(sessions, checked, strict=True)):
        check_turn_count(session, reference, f"rankings[{s}]")
    places = [(s, turn) for s, turns in enumerate(sessions) for turn in range(len(turns))]
    respelled_turns = iter(
        _in_known_ids(
            [turn for turns in sessions for turn in turns],
            checked,
            lambda place: "rankings[{}][{}]".format(*places[place]),
        )
    )
    sessions = [[next(respelled_turns) for _ in turns] for turns in sessions]
    kept = _answered_once(references, [sessions], checked)
    sessions, checked = [sessions[s] for s in kept], [checked[s] for s in kept]

    num_turns = _lengths(sessions)
    turns = [turn for turns in sessions for turn in turns]
    owners = [s for s, turns in enumerate(sessions) for _ in turns]
    ranks = _ranks_by_turn(turns, [checked[s] for s in owners], num_turns, _depth(wanted, turns))
    list_lengths = np.zeros_like(ranks)
    list_lengths[np.arange(ranks.shape[1]) < num_turns[:, None]] = _lengths(turns)
    return evaluate_coded(wanted, CodedSessions(ranks, list_lengths, num_turns))


def _check_references(references: Sequence[Mapping[str, Any]], wanted: Wanted) -> list[Reference]:
    fields = _fields(wanted)
    return [check_reference(reference, f"references[{q}]", fields) for q, reference in enumerate(references)]


def _fields(wanted: Wanted) -> list[str]:
    """What the metrics need of a reference."""
    return list(dict.fromkeys(each for name, _ in wanted for each in METRICS[name].fields))


def _depth(wanted: Wanted, rankings: Sequence[Sequence[str]]) -> int:
    """Places to look at: the largest cutoff, or all where a metric has none."""
    longest = max(map(len, rankings))
    cutoffs = [k for _, k in wanted]
    return longest if None in cutoffs else min(longest, max(k for k in cutoffs if k is not None))


def _lengths(lists: Sequence[Sequence[Any]]) -> IntArray:
    return np.fromiter(map(len, lists), np.int64, len(lists))


def _answered_once(
    references: Sequence[Any], rankings: Sequence[Sequence[Any]], checked: Sequence[Reference]
) -> list[int]:
    """The places of the answers that count; what is there twice, answer and reference, counts once."""
    queries = [query_of(reference) for reference in references]
    named = [query for query in queries if query is not None]
    if len(set(named)) == len(named):
        return list(range(len(queries)))
    known = [ids_of(reference) for reference in checked]
    answers = [
        [reference, *(alike(each[n], known[n]) for each in rankings)] for n, reference in enumerate(checked)
    ]
    kept, twice = answered_once(queries, answers)
    if twice is not None:
        raise InputError(
            f"rankings[{twice}] answers {queries[twice]!r}, which has another answer or reference already. "
            "Fix: keep one of them."
        )
    if len(kept) < len(answers):
        warn_of_padding("rankings", queries, kept)
    return kept


def _in_known_ids(
    lists: list[list[str]], references: Sequence[Reference], place: Callable[[int], str]
) -> list[list[str]]:
    """Rankings in the spelling of the ids that references name, of which they hold some."""
    known = set().union(*map(ids_of, references))
    lists, twice = respelled(lists, known)
    if twice is not None:
        raise InputError(
            f"{place(twice[0])} names {twice[1]!r} twice, spelled in two ways. Fix: keep the first."
        )
    odd = stranger(lists, known)
    if odd is not None:
        said = (
            f"no ranking holds any of the {len(known):,} ids that references name: {odd[0]!r} stands where "
            f"ids such as {min(known)!r} were meant. Fix: rank the gallery's own ids."
        )
        if odd[1]:
            raise InputError(said)
        warnings.warn(said, stacklevel=3)
    return lists


def _subset_lists(
    rankings: Sequence[Sequence[str]] | None, references: Sequence[Reference], metric: str
) -> list[list[str]]:
    if rankings is None:
        raise InputError(f"{metric} ranks the subset on its own. Fix: pass subset_rankings.")
    return [
        check_subset_ranking(
            check_ids(ranking, f"subset_rankings[{q}]", what="ranking", allow_empty=True),
            reference,
            f"subset_rankings[{q}]",
        )
        for q, (ranking, reference) in enumerate(zip(rankings, references, strict=True))
    ]


def _subset_ranks(lists: Sequence[Sequence[str]], references: Sequence[Reference]) -> IntArray:
    targets = [(reference["target"],) for reference in references]
    [target] = mark_ids(lists, [targets], max(map(len, lists)))
    return first_ranks(target)


def _ranks_by_turn(
    rankings: Sequence[Sequence[str]], references: Sequence[Reference], num_turns: IntArray, depth: int
) -> IntArray:
    """Best rank of a positive at each turn, (sessions, longest); `UNLISTED` behind a session's last turn."""
    relevant = [reference["positives"] for reference in references]
    ranks = np.full((len(num_turns), int(num_turns.max())), UNLISTED, dtype=np.int64)
    [positive] = mark_ids(rankings, [relevant], depth)
    ranks[np.arange(ranks.shape[1]) < num_turns[:, None]] = first_ranks(positive)
    return ranks
