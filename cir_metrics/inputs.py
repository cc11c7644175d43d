"""Checks of predictions and references, shared by the evaluate modules and by `cir_metrics.evaluation`.

Every error names the position and the value and says how to mend it; nothing is dropped and nothing guessed.
"""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cir_metrics.errors import InputError

Reference = dict[str, Any]

FIELDS = ("target", "reference", "subset", "positives", "negatives", "num_turns")
"""What a reference may hold."""
_PLAIN = frozenset(FIELDS) - {"num_turns"}

_ROW_FIELDS = {
    "target": "target_image_id",
    "reference": "reference_image_id",
    "subset": "subset_image_ids",
    "positives": "positive_image_ids",
    "negatives": "negative_image_ids",
}
_SESSION_FIELDS = {"positives": "ground_truth_ids", "num_turns": "num_turns"}
_ROW_MARKS = frozenset({"query_id", "session_id", *_ROW_FIELDS.values(), "ground_truth_ids"})


def references(rows: Iterable[Mapping[str, Any]]) -> list[Reference]:
    """The references that the metrics take, picked from rows of `cir_datasets`.

    Args:
        rows: queries (`target_image_id`, `reference_image_id`, `subset_image_ids`, `positive_image_ids`,
            `negative_image_ids`) or sessions (`ground_truth_ids`, `num_turns`): a `datasets.Dataset`, or
            dicts.

    Returns:
        One dict a row with those of target, reference, subset, positives, negatives and num_turns that the
        row has. Null fields are left out, and so is an empty subset.

    Raises:
        InputError: `rows` is no list of rows; a row is not a dict, has none of these fields, or holds no
            ground truth (it is withheld).

    Example:
        >>> references([{"session_id": "s", "ground_truth_ids": ["a"], "num_turns": 2, "turns": []}])
        [{'positives': ['a'], 'num_turns': 2}]
    """
    if rows is None or isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
        raise InputError(f"rows is {_short(rows)}. Fix: pass a list of rows, or a whole dataset split.")
    return [_from_row(row, f"rows[{position}]") for position, row in enumerate(rows)]


def as_array(value: object, name: str) -> NDArray[Any]:
    """`value` as a NumPy array.

    Raises:
        InputError: its rows differ in length.

    Example:
        >>> as_array([[1, 2], [3, 4]], "ranks").shape
        (2, 2)
    """
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InputError(
            f"{name} is no rectangular array: its rows differ in length. Fix: pad the short ones."
        ) from error


def check_cutoffs(ks: object) -> tuple[int, ...]:
    """`ks` as a tuple of ints without repeats, in the order given.

    Raises:
        InputError: `ks` is no tuple or list, is empty, or holds something else than ints of 1 or more.

    Example:
        >>> check_cutoffs([5, 10])
        (5, 10)
    """
    if isinstance(ks, (str, bytes, Mapping)) or not isinstance(ks, Sequence):
        raise InputError(
            f"ks={ks!r}; give a tuple or list of cutoffs. Fix: pass ks=(5, 10), or ks=(5,) for one."
        )
    if not ks:
        raise InputError(f"ks={ks!r} is empty. Fix: name at least one cutoff, such as ks=(5,).")
    return tuple(dict.fromkeys(check_cutoff(k) for k in ks))


def check_cutoff(k: object) -> int:
    """`k` as an int.

    Raises:
        InputError: `k` is no int, or below 1.

    Example:
        >>> check_cutoff(5)
        5
    """
    if isinstance(k, bool) or not isinstance(k, numbers.Integral):
        raise InputError(f"k={k!r}; a cutoff is a whole number, 1 or more")
    if k < 1:
        raise InputError(f"k={int(k)}; a cutoff is 1 or more")
    return int(k)


def check_same_length(
    predictions: Sequence[Any], references: Sequence[Any], what: str = "predictions"
) -> None:
    """One prediction a reference, and at least one.

    Raises:
        InputError: the lengths differ, or both are empty.
    """
    if len(predictions) != len(references):
        raise InputError(
            f"{len(predictions)} {what} but {len(references)} references. Fix: give one a query."
        )
    if not len(predictions):
        raise InputError(
            f"{what} and references are empty: a mean over no queries is undefined. Fix: give at least one."
        )


def check_list(value: object, name: str) -> list[Any]:
    """`value` as a list, whatever sequence it was (list, tuple, array, column of a dataset).

    Raises:
        InputError: it is None, a string, a dict, or cannot be listed.
    """
    if value is None or isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InputError(f"{name} is {_short(value)}; it must be a list. Fix: give one entry a query.")
    return list(value)


def check_ids(value: object, where: str, *, what: str, allow_empty: bool = False) -> list[str]:
    """A list of distinct image ids.

    Args:
        value: what was given.
        where: how messages name it, such as `predictions[3]`.
        what: what it should be, such as `ranking`.
        allow_empty: whether it may hold nothing.

    Returns:
        The ids as a list of strings; the very list given, where it is one.

    Raises:
        InputError: not a list, empty, an entry that is no string or an empty one, an id given twice.

    Example:
        >>> check_ids(("b", "a"), "predictions[0]", what="ranking")
        ['b', 'a']
    """
    ids = value if isinstance(value, list) else _listable(value, where, what)
    if not ids:
        if allow_empty:
            return ids
        raise InputError(f"{where} is an empty {what}. Fix: name at least one image.")
    try:
        # Quicker than asking each for its type: joining refuses whatever is no string.
        "".join(ids)
    except TypeError:
        for position, each in enumerate(ids):
            _image_id(each, f"{where}[{position}]")
    distinct = set(ids)
    if "" in distinct:
        raise InputError(
            f"{where}[{ids.index('')}] is an empty string, which is no image id. Fix: name the image."
        )
    if len(distinct) != len(ids):
        raise InputError(_repeated(ids, where, what))
    return ids


def check_turns(value: object, where: str, *, allow_empty: bool = False) -> list[list[str]]:
    """A session's prediction: one ranking a turn.

    Args:
        value: what was given.
        where: how messages name it, such as `predictions[3]`.
        allow_empty: whether a turn's ranking may hold nothing.

    Returns:
        The rankings as lists of strings, at least one.

    Raises:
        InputError: not a list of lists, no turn, or a turn that `check_ids` refuses.
    """
    if value is None or isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InputError(
            f"{where} is {_short(value)}; a session is a list of rankings. Fix: give one ranking a turn."
        )
    turns = list(value)
    if not turns:
        raise InputError(f"{where} has no turn. Fix: give one ranking a turn.")
    if all(isinstance(turn, str) for turn in turns):
        raise InputError(
            f"{where} is one ranking; a session is a list of them. Fix: write a single turn as [ranking]."
        )
    return [
        check_ids(turn, f"{where}[{number}]", what="ranking", allow_empty=allow_empty)
        for number, turn in enumerate(turns)
    ]


def check_reference(value: object, where: str, fields: Sequence[str]) -> Reference:
    """The fields that a metric needs, checked, from a reference or from a whole row of a dataset.

    Args:
        value: a dict with the fields of `FIELDS`, or a row (see `references`).
        where: how messages name it, such as `references[3]`.
        fields: the fields that the metric needs.

    Returns:
        A dict with exactly `fields`, and `num_turns` where the reference has it.

    Raises:
        InputError: not a dict, an unknown or missing key, a value of the wrong kind, no positives, an image
            that is both positive and hard negative, or a subset that lacks target or reference.

    Example:
        >>> check_reference({"target": "a", "positives": ["a", "b"]}, "references[0]", ["target"])
        {'target': 'a'}
    """
    if not isinstance(value, Mapping):
        raise InputError(
            f"{where} is {_short(value)}; a reference is a dict with {_listed(fields)}. "
            "Fix: take them from cir_metrics.references(rows)."
        )
    is_row = not _ROW_MARKS.isdisjoint(value)
    given = _pick(value) if is_row else value
    if not is_row:
        _refuse_unknown(value, where)
    checked: Reference = {}
    for field in fields:
        if field not in given:
            raise InputError(_missing(value, where, field, is_row))
        checked[field] = _check_field(field, given[field], f"{where}[{_key(value, field, is_row)!r}]")
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


def is_clean(value: object, fields: Collection[str]) -> bool:
    """Whether a reference has what a metric needs and nothing to complain of, told quickly.

    Nearly every reference has; `check_reference` says of the others what is wrong.

    Args:
        value: what was given.
        fields: some of `target`, `positives` and `negatives`.

    Example:
        >>> is_clean({"positives": ["a"]}, ["positives"]), is_clean({"positives": ["a", "a"]}, ["positives"])
        (True, False)
    """
    if type(value) is not dict or not _PLAIN.issuperset(value):
        return False
    found: dict[str, set[str]] = {}
    for field in fields:
        ids = value.get(field)
        if field == "target":
            if type(ids) is not str or not ids:
                return False
            continue
        if type(ids) is not list or not (ids or field == "negatives"):
            return False
        try:
            "".join(ids)
        except TypeError:
            return False
        distinct = found[field] = set(ids)
        if len(distinct) != len(ids) or "" in distinct:
            return False
    return len(found) < 2 or found["positives"].isdisjoint(found["negatives"])


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


def check_subset_ranking(ranking: Sequence[str], reference: Reference, where: str) -> None:
    """A subset ranking holds members of the subset other than the reference image.

    Raises:
        InputError: it holds the reference image or an image from outside the subset.
    """
    members = set(reference["subset"])
    for position, image_id in enumerate(ranking):
        if image_id == reference["reference"]:
            raise InputError(
                f"{where}[{position}] is the reference image {image_id!r}; it is not ranked. Fix: drop it."
            )
        if image_id not in members:
            raise InputError(
                f"{where}[{position}] is {image_id!r}, which is not in the subset. Fix: rank its members."
            )


def _listable(value: object, where: str, what: str) -> list[Any]:
    if value is None or isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InputError(
            f"{where} is {_short(value)}; a {what} is a list of image ids. Fix: pass a list of strings."
        )
    return value.tolist() if isinstance(value, np.ndarray) else list(value)


def _from_row(row: object, where: str) -> Reference:
    if not isinstance(row, Mapping):
        raise InputError(f"{where} is {_short(row)}; a row is a dict. Fix: pass the rows of a benchmark.")
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
    if "subset" in picked and not len(picked["subset"]):
        del picked["subset"]
    return picked


def _check_field(field: str, value: object, where: str) -> Any:
    if field in ("target", "reference"):
        return _image_id(value, where)
    what = {"subset": "subset", "positives": "list of positives", "negatives": "list of hard negatives"}[
        field
    ]
    return check_ids(value, where, what=what, allow_empty=field == "negatives")


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
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise InputError(
            f"{where} is {_short(value)}; a session has 1 turn or more. Fix: give the number of turns."
        )
    return int(value)


def _image_id(value: object, where: str) -> str:
    if not isinstance(value, str):
        fix = "drop it" if value is None else f"write {str(value)!r} if that is the id"
        raise InputError(f"{where} is {_short(value)}; an image id is a string. Fix: {fix}.")
    if not value:
        raise InputError(f"{where} is an empty string, which is no image id. Fix: name the image.")
    return str(value)


def _repeated(ids: Sequence[str], where: str, what: str) -> str:
    seen: dict[str, int] = {}
    for position, image_id in enumerate(ids):
        if image_id in seen:
            return (
                f"{where}[{position}] is {image_id!r}, which stands at [{seen[image_id]}] already; a {what} "
                "names an image once. Fix: keep the first."
            )
        seen[image_id] = position
    return f"{where} names an image twice. Fix: keep the first."


def _refuse_unknown(value: Mapping[str, Any], where: str) -> None:
    for key in value:
        if key not in FIELDS:
            near = difflib.get_close_matches(str(key), FIELDS, n=1, cutoff=0.6)
            hint = f" Did you mean {near[0]!r}?" if near else ""
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


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
