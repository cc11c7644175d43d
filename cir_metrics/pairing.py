"""Which entry belongs to which: predictions to references, rows to ids, and answers that are there twice.

Entries belong together by query id where both say it, else by position.

A data frame or a series says query ids by its index, unless that is the default one of pandas, which only
counts the rows. References say them by `query_id` or `session_id`, or by their index.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cir_metrics.errors import InputError
from cir_metrics.ids import as_list, check_list, is_frame, is_missing, plain_id

QUERY, SESSION = "query_id", "session_id"
"""What a row says its id under."""
_IDS_OF_ROWS = frozenset({QUERY, SESSION})
_SESSION_MARKS = frozenset({"turns", "ground_truth_ids"})
_Ids = list[str | None]


def query_of(row: object) -> str | None:
    """Id of the query or session that a row or a reference is of; None where it does not say it.

    Example:
        >>> query_of({"query_id": 12063, "target_image_id": "a"}), query_of({"target": "a"})
        ('12063', None)
    """
    if not isinstance(row, Mapping):
        return None
    return plain_id(row.get(QUERY, row.get(SESSION)))


def index_ids(value: Any) -> list[str | None] | None:
    """The ids in the index of a data frame or a series; None in place of a label that cannot be an id.

    Returns:
        None where there is no index, or only the default one of pandas, which counts the rows from 0.

    Example:
        >>> import pandas as pd
        >>> index_ids(pd.Series(["a", "b"], index=["q", 7])), index_ids(pd.Series(["a", "b"]))
        (['q', '7'], None)
    """
    if not hasattr(value, "iloc"):
        return None
    index = value.index
    if type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1:
        return None
    return [plain_id(label) for label in index.tolist()]


def frame_rows(value: Any) -> Any:
    """The rows of a data frame as dicts, without the fields that are empty; anything else as it is.

    Where there is no column of ids, the index holds them. A series of dicts has its ids in the same way.
    """
    if not hasattr(value, "iloc"):
        return value
    rows, ids = as_list(value), index_ids(value)
    if is_frame(value):
        records = value.to_dict("records")
        rows = [{key: cell for key, cell in row.items() if not is_missing(cell)} for row in records]
        ids = ids if _IDS_OF_ROWS.isdisjoint(value.columns) else None
    return rows if ids is None else [_with_id(row, each) for row, each in zip(rows, ids, strict=True)]


def _with_id(row: Any, own: str | None) -> Any:
    if own is None or not isinstance(row, Mapping) or not _IDS_OF_ROWS.isdisjoint(row):
        return row
    return {QUERY if _SESSION_MARKS.isdisjoint(row) else SESSION: own, **row}


def paired(references: Any, **predictions: Any) -> tuple[list[Any], ...]:
    """Lists of predictions and the references, entry by entry of one query, in the references' order.

    Args:
        references: dicts, or rows of a dataset or a data frame.
        predictions: by the name that messages use, one prediction a reference.

    Returns:
        Each list of predictions, then the references. A query that is answered twice stands there twice.

    Raises:
        InputError: one of them is no list (`check_list`), the lengths or the indexes differ, one side lacks
            a query of the other, or all are empty.

    Example:
        >>> paired([{"target": "a"}, {"target": "b"}], rankings=(["a"], ["c"]))
        ([['a'], ['c']], [{'target': 'a'}, {'target': 'b'}])
    """
    lists = [check_list(given, what) for what, given in predictions.items()]
    rows = check_list(frame_rows(references), "references")
    joined: list[_Ids | None] = [None] * len(lists)
    known: _Ids = []
    if rows and any(hasattr(given, "iloc") for given in predictions.values()):
        known = [query_of(row) for row in rows]
        joined = [_joining_ids(given, references, rows, known, what) for what, given in predictions.items()]
    for what, entries, ids in zip(predictions, lists, joined, strict=True):
        if ids is None and len(entries) != len(rows):
            raise InputError(f"{len(entries)} {what} but {len(rows)} references. Fix: give one a query.")
        if not rows:
            raise InputError(
                f"{what} and references are empty: a mean over no queries is undefined. "
                "Fix: give at least one."
            )
    if all(ids is None for ids in joined):
        return *lists, rows
    columns = _places([known, *(known if ids is None else ids for ids in joined)])
    sources = zip([rows, *lists], columns, strict=True)
    rows, *lists = ([entries[place] for place in places] for entries, places in sources)
    return *lists, rows


def _joining_ids(given: Any, references: Any, rows: Sequence[Any], known: _Ids, what: str) -> _Ids | None:
    """The query ids to find each prediction's reference by; None where position says it."""
    if not hasattr(given, "iloc") or not len(given):
        return None
    labels, ids = given.index.tolist(), index_ids(given)
    others = references.index.tolist() if hasattr(references, "iloc") else None
    if ids is None or not set(ids).intersection(known).difference({None}):
        _check_labels(labels, others, ids, known, what)
        return None
    if len(ids) == len(known) and all(query in (None, own) for query, own in zip(known, ids, strict=True)):
        return None
    in_order = _in_order(what, others)
    if None in known:
        raise InputError(
            f"references[{known.index(None)}] does not say its query id, and the others are not in the order "
            f"of the index of {what}. Fix: give it its id, or, where both are in one order, use {in_order}."
        )
    wanted, given_ids = set(known), set(ids)
    for label, own in zip(labels, ids, strict=True):
        if own not in wanted:
            raise InputError(
                f"{what} have a row of {label!r}, which no reference is of. Fix: drop it, "
                f"{what}.drop([{label!r}]); or, where the index holds no query ids and both are in one "
                f"order, use {in_order}."
            )
    for place, query in enumerate(known):
        if query not in given_ids:
            raise InputError(
                f"references[{place}] is of {query!r}, of which {what} have no row. Fix: give its ranking, "
                f"or leave it out, {_without(references, rows[place], place)}."
            )
    if labels == others and index_ids(references) is not None:
        raise InputError(
            f"{what} and references have one index, and the ids in the references' column are in another "
            f"order. Fix: references.set_index({_key(rows[0])!r}) where the index of {what} is of these ids; "
            f"where both are in one order, {what}.reset_index(drop=True) and references likewise."
        )
    return ids


def _check_labels(
    labels: list[Any], others: list[Any] | None, ids: _Ids | None, known: _Ids, what: str
) -> None:
    """Refuse an index without an id of a reference, unless it only counts rows or is the references' own."""
    if len(labels) != len(known) or labels == others:
        return
    if others is None:
        counts = all(type(label) is int and label == labels[0] + n for n, label in enumerate(labels))
        first = next((query for query in known if query is not None), None)
        if ids is None or counts or first is None:
            return
        raise InputError(
            f"the index of {what} holds {labels[0]!r} and other labels, none of which is the id of a "
            f"reference, such as {first!r}. Fix: make the query ids its index, or, where both are in one "
            f"order, use {_in_order(what, others)}."
        )
    if len(set(labels)) == len(labels) and set(labels) == set(others):
        fix = f"bring them into one order, {what}.loc[references.index]"
    else:
        fix = f"where both are in one order, use {_in_order(what, others)}"
    raise InputError(f"{what} and references have different indexes. Fix: {fix}.")


def _in_order(what: str, others: list[Any] | None) -> str:
    """How predictions that are in the references' order say so."""
    return f"{what}.reset_index(drop=True)" if others is None else f"{what}.set_axis(references.index)"


def _key(row: Mapping[str, Any]) -> str:
    return QUERY if QUERY in row else SESSION


def _without(references: Any, row: Mapping[str, Any], place: int) -> str:
    """How references without the rows of one query are written."""
    key = _key(row)
    if is_frame(references) and key in references.columns:
        return f"references[references[{key!r}] != {row[key]!r}]"
    if index_ids(references) is not None:
        return f"references.drop([{references.index.tolist()[place]!r}])"
    return f"[row for row in references if row[{key!r}] != {row[key]!r}]"


def _places(columns: Sequence[_Ids]) -> list[list[int]]:
    """By list of ids the places that belong together, in the order of the first list.

    Where lists hold an id more or less often, the last place of it stands again, so that each is seen.
    """
    found: list[dict[str | None, list[int]]] = []
    for ids in columns:
        places: dict[str | None, list[int]] = {}
        for place, query in enumerate(ids):
            places.setdefault(query, []).append(place)
        found.append(places)
    rows = [(query, n) for query in found[0] for n in range(max(len(places[query]) for places in found))]
    return [[places[query][min(n, len(places[query]) - 1)] for query, n in rows] for places in found]


def answered_once(
    keys: Sequence[str | None], answers: Sequence[Any], before: Mapping[str, Any] = MappingProxyType({})
) -> tuple[list[int], int | None]:
    """The places of the answers that count, where samplers repeat queries to fill their last batches.

    Args:
        keys: id of each answer's query; None where it is not said.
        answers: what was answered.
        before: what was answered earlier, by query.

    Returns:
        The first place of each query, in order; and the place of an answer that differs from an earlier one
        to the same query, or None.

    Example:
        >>> answered_once(["q", "r", "q"], [["a"], ["b"], ["a"]]), answered_once(["q"], ["b"], {"q": "a"})
        (([0, 1], None), ([], 0))
    """
    first: dict[str, Any] = {}
    kept: list[int] = []
    for place, (key, answer) in enumerate(zip(keys, answers, strict=True)):
        if key is None or (key not in first and key not in before):
            kept.append(place)
            if key is not None:
                first[key] = answer
        elif (first[key] if key in first else before[key]) != answer:
            return kept, place
    return kept, None


def warn_of_padding(name: str, keys: Sequence[str | None], kept: Sequence[int], stacklevel: int = 4) -> None:
    """Say which answers are there again and count once.

    Args:
        name: what holds the answers.
        keys: id of each answer's query.
        kept: the places that count.
        stacklevel: whose line the warning names, as `warnings.warn` counts.
    """
    again = [keys[place] for place in sorted(set(range(len(keys))).difference(kept))]
    warnings.warn(
        f"{name}: {len(again):,} repeated answers, to {again[0]!r} first, equal earlier ones and count once. "
        "(Samplers of several processes fill their last batches so.) Fix: drop the repeated rows.",
        stacklevel=stacklevel,
    )
