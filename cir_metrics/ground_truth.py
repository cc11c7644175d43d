"""Checks of references: what a metric reads of a query's or session's ground truth, from dicts or rows.

Every error names the position and the value and says how to mend it; nothing is dropped and nothing guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cir_metrics.errors import InputError, did_you_mean
from cir_metrics.ids import QUERY, SESSION, answered_once, frame_rows, order_fault, plain_id, spellings
from cir_metrics.inputs import check_id, check_ids, quoted
from cir_metrics.sums import is_whole

Reference = dict[str, Any]

FIELDS = ("target", "reference", "subset", "positives", "negatives", "gallery", "num_turns")
"""What a reference may hold, beside the id of its query."""
_PLAIN = frozenset(FIELDS) - {"gallery", "num_turns"}

_ROW_FIELDS = {
    "target": "target_image_id",
    "reference": "reference_image_id",
    "subset": "subset_image_ids",
    "positives": "positive_image_ids",
    "negatives": "negative_image_ids",
    "gallery": "gallery_image_ids",
}
_SESSION_FIELDS = {"positives": "ground_truth_ids", "num_turns": "num_turns"}
_ROW_MARKS = frozenset({"session_id", *_ROW_FIELDS.values(), "ground_truth_ids"})


def references(rows: Iterable[Mapping[str, Any]]) -> list[Reference]:
    """The references that the metrics take, picked from rows of `cir_datasets`.

    Args:
        rows: queries (`target_image_id`, `reference_image_id`, `subset_image_ids`, `positive_image_ids`,
            `negative_image_ids`, `gallery_image_ids`) or sessions (`ground_truth_ids`, `num_turns`): a
            `datasets.Dataset`, or dicts.

    Returns:
        One dict a row with those of target, reference, subset, positives, negatives, gallery and num_turns
        that the row has. Null fields are left out, and so is an empty subset or gallery.

    Raises:
        InputError: `rows` is not a list of rows; a row is not a dict, has none of these fields, or holds no
            ground truth (it is withheld); two rows are of one query.

    Example:
        >>> references([{"session_id": "s", "ground_truth_ids": ["a"], "num_turns": 2, "turns": []}])
        [{'positives': ['a'], 'num_turns': 2}]
    """
    rows = frame_rows(rows)
    if order_fault(rows) is not None:
        raise InputError(f"rows is {quoted(rows)}. Fix: pass a list of rows, or a whole dataset split.")
    rows = list(rows)
    _, twice = answered_once([query_of(row) for row in rows], range(len(rows)))
    if twice is not None:
        raise InputError(
            f"rows[{twice}] is of {query_of(rows[twice])!r}, as a row before it is. Fix: pass each once; or "
            "give the metrics the rows themselves, where equal answers to one query count once."
        )
    return [_from_row(row, f"rows[{position}]") for position, row in enumerate(rows)]


def query_of(row: object) -> str | None:
    """Id of the query or session that a row or a reference is of; None where it does not say it.

    Example:
        >>> query_of({"query_id": 12063, "target_image_id": "a"}), query_of({"target": "a"})
        ('12063', None)
    """
    if not isinstance(row, Mapping):
        return None
    return plain_id(row.get(QUERY, row.get(SESSION)))


def check_reference(value: object, where: str, fields: Sequence[str]) -> Reference:
    """The fields that a metric needs, checked, from a reference or from a whole row of a dataset.

    Args:
        value: a dict with the fields of `FIELDS`, or a row (see `references`).
        where: how messages name it, such as `references[3]`.
        fields: the fields that the metric needs.

    Returns:
        A dict with exactly `fields`, and `gallery` and `num_turns` where the reference has them.

    Raises:
        InputError: not a dict, an unknown or missing key, a value of the wrong kind, no positives, an image
            that is both positive and hard negative, a subset that lacks target or reference, or a query's own
            gallery that lacks a target or hard negative.

    Example:
        >>> check_reference({"target": "a", "positives": ["a", "b"]}, "references[0]", ["target"])
        {'target': 'a'}
    """
    if not isinstance(value, Mapping):
        raise InputError(
            f"{where} is {quoted(value)}; a reference is a dict with {_listed(fields)}. "
            "Fix: take them from cir_metrics.references(rows)."
        )
    is_row = not _ROW_MARKS.isdisjoint(value) or (QUERY in value and _PLAIN.isdisjoint(value))
    given = _pick(value) if is_row else value
    if not is_row:
        _refuse_unknown(value, where)
    checked: Reference = {}
    for field in fields:
        if field not in given:
            raise InputError(_missing(value, where, field, is_row))
        checked[field] = _check_field(field, given[field], f"{where}[{_key(value, field, is_row)!r}]")
    if given.get("gallery") is not None:
        checked["gallery"] = _check_field("gallery", given["gallery"], f"{where}['gallery']")
        outside = ids_of(checked).difference(checked["gallery"])
        if outside:
            raise InputError(
                f"{where}: {min(outside)!r} is a target or hard negative, not in the query's own gallery. "
                "Fix: list it there, spelled alike."
            )
    if given.get("num_turns") is not None:
        checked["num_turns"] = _turn_count(given["num_turns"], f"{where}['num_turns']")
    if "positives" in checked and "negatives" in checked:
        both = set(checked["positives"]).intersection(checked["negatives"])
        if both:
            raise InputError(
                f"{where}: {min(both)!r} is both positive and hard negative. Fix: keep it in one of the two."
            )
    if "subset" in checked:
        _check_subset(checked, where)
    return checked


def ids_of(reference: Reference) -> set[str]:
    """The ids of targets and hard negatives that a checked reference names.

    Example:
        >>> sorted(ids_of({"target": "a", "positives": ["a", "b"], "num_turns": 2}))
        ['a', 'b']
    """
    named: set[str] = set()
    for field in ("target", "positives", "negatives"):
        ids = reference.get(field, ())
        named.update((ids,) if isinstance(ids, str) else ids)
    return named


def check_turn_count(turns: Sequence[object], reference: Reference, where: str) -> None:
    """One ranking a turn, where the reference says how many turns its session has.

    Raises:
        InputError: the numbers differ.
    """
    expected = reference.get("num_turns", len(turns))
    if len(turns) != expected:
        raise InputError(
            f"{where} has {len(turns)} rankings, its session {expected} turns. Fix: give one ranking a turn."
        )


def check_subset_ranking(ranking: Sequence[str], reference: Reference, where: str) -> list[str]:
    """A subset ranking as the subset spells its members: it holds those other than the reference image.

    Raises:
        InputError: it holds the reference image, an image from outside the subset, or one twice.
    """
    members = set(reference["subset"])
    if not members.issuperset(ranking):
        changed = spellings(ranking, members)
        ranking = check_ids(
            [changed.get(each, each) for each in ranking], where, what="ranking", allow_empty=True
        )
    for position, image_id in enumerate(ranking):
        if image_id == reference["reference"]:
            raise InputError(
                f"{where}[{position}] is the reference image {image_id!r}; it is not ranked. Fix: drop it."
            )
        if image_id not in members:
            raise InputError(
                f"{where}[{position}] is {image_id!r}, which is not in the subset. Fix: rank its members."
            )
    return list(ranking)


def check_own_gallery(ranking: Sequence[str], reference: Reference, where: str) -> list[str]:
    """A ranking as the query's own gallery spells its images, where the query has one.

    Raises:
        InputError: it holds an image that the query does not rank, or one twice.
    """
    members = set(reference.get("gallery", ranking))
    if members.issuperset(ranking):
        return list(ranking)
    changed = spellings(ranking, members)
    ranking = check_ids(
        [changed.get(each, each) for each in ranking], where, what="ranking", allow_empty=True
    )
    for position, image_id in enumerate(ranking):
        if image_id not in members:
            raise InputError(
                f"{where}[{position}] is {image_id!r}, which is not in the query's own gallery. "
                "Fix: rank the images of its gallery_image_ids."
            )
    return ranking


def _from_row(row: object, where: str) -> Reference:
    if not isinstance(row, Mapping):
        raise InputError(f"{where} is {quoted(row)}; a row is a dict. Fix: pass the rows of a benchmark.")
    picked = _pick(row)
    if not picked:
        names = _listed([*_ROW_FIELDS.values(), *_SESSION_FIELDS.values()])
        raise InputError(f"{where} has none of {names}. Fix: pass queries or sessions, not images.")
    if "target" not in picked and not picked.get("positives"):
        raise InputError(
            f"{where}{_row_name(row)}: its ground truth is withheld. Fix: ask the publisher's server."
        )
    return picked


def _pick(row: Mapping[str, Any]) -> Reference:
    fields = _SESSION_FIELDS if "ground_truth_ids" in row else _ROW_FIELDS
    picked = {field: row[name] for field, name in fields.items() if row.get(name) is not None}
    for field in ("subset", "gallery"):
        if field in picked and not len(picked[field]):
            del picked[field]
    return picked


def _check_field(field: str, value: object, where: str) -> Any:
    if field in ("target", "reference"):
        return check_id(value, where)
    called = {"positives": "list of positives", "negatives": "list of hard negatives"}
    what = called.get(field, field)
    return check_ids(value, where, what=what, allow_empty=field == "negatives", ordered=False)


def _check_subset(checked: Reference, where: str) -> None:
    for field in ("target", "reference"):
        if checked[field] not in checked["subset"]:
            raise InputError(
                f"{where}: {field} {checked[field]!r} is not in the subset. Fix: give all its members."
            )
    if checked["target"] == checked["reference"]:
        raise InputError(
            f"{where}: {checked['target']!r} is both target and reference. Fix: correct one of them."
        )


def _turn_count(value: object, where: str) -> int:
    if not is_whole(value) or value < 1:
        raise InputError(
            f"{where} is {quoted(value)}; a session has 1 turn or more. Fix: give the number of turns."
        )
    return int(value)


def _refuse_unknown(value: Mapping[str, Any], where: str) -> None:
    for key in value:
        if key not in FIELDS and key != QUERY:
            hint = did_you_mean(key, FIELDS)
            raise InputError(f"{where} has the unknown key {key!r}.{hint} Fix: use {_listed(FIELDS)}.")


def _missing(value: Mapping[str, Any], where: str, field: str, is_row: bool) -> str:
    if not is_row:
        return (
            f"{where} lacks {field!r}. Fix: add it; cir_metrics.references(rows) takes it from a benchmark."
        )
    name = _key(value, field, is_row)
    if name in value:
        return (
            f"{where}{_row_name(value)}: {name!r} is {'null' if value[name] is None else 'empty'}. Fix: use "
            "a metric that this benchmark has or, where the ground truth is withheld, the publisher's server."
        )
    return f"{where}{_row_name(value)} lacks {name!r}. Fix: pass a row of a benchmark that has this metric."


def _key(value: Mapping[str, Any], field: str, is_row: bool) -> str:
    if not is_row:
        return field
    return (
        "ground_truth_ids"
        if field == "positives" and "ground_truth_ids" in value
        else _ROW_FIELDS.get(field, field)
    )


def _row_name(row: Mapping[str, Any]) -> str:
    for name in ("query_id", "session_id"):
        if name in row:
            return f" ({name} {row[name]!r})"
    return ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
