"""Checks of what callers hand in: rankings and lists of image ids, cutoffs, arrays.

Every error names the position and the value and says how to mend it; nothing is dropped and nothing guessed.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cir_metrics.errors import InputError


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
            f"{name} is not a rectangular array: its rows differ in length. Fix: pad the short ones."
        ) from error


def check_cutoffs(ks: object) -> tuple[int, ...]:
    """`ks` as a tuple of ints without repeats, in the order given.

    Raises:
        InputError: `ks` is not a tuple or list, is empty, or holds something else than ints of 1 or more.

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
        InputError: `k` is not an int, or below 1.

    Example:
        >>> check_cutoff(5)
        5
    """
    if isinstance(k, bool) or not isinstance(k, numbers.Integral):
        raise InputError(f"k={k!r}; a cutoff is a whole number, 1 or more. Fix: pass k=10, say.")
    if k < 1:
        raise InputError(f"k={int(k)}; a cutoff is 1 or more. Fix: pass k=10, say.")
    return int(k)


def check_same_length(
    predictions: Sequence[Any], references: Sequence[Any], what: str = "predictions"
) -> None:
    """One prediction a reference, and at least one.

    Raises:
        InputError: one of them is a set, the lengths differ, or both are empty.
    """
    _refuse_set(predictions, what, "it must be a list, one entry a query")
    _refuse_set(references, "references", "it must be a list, one entry a query")
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
        InputError: it is None, a string, a dict, a set, or cannot be listed.
    """
    _refuse_set(value, name, "it must be a list, one entry a query")
    if value is None or isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InputError(f"{name} is {quoted(value)}; it must be a list. Fix: give one entry a query.")
    return list(value)


def check_ids(
    value: object, where: str, *, what: str, allow_empty: bool = False, ordered: bool = True
) -> list[str]:
    """A list of distinct image ids.

    Args:
        value: what was given.
        where: how messages name it, such as `predictions[3]`.
        what: what it should be, such as `ranking`.
        allow_empty: whether it may hold nothing.
        ordered: whether the order says something, so that a set will not do.

    Returns:
        The ids as a list of strings; the very list given, where it is one.

    Raises:
        InputError: not a list, empty, an entry that is not a string, an empty one or no Unicode text, an id
            given twice.

    Example:
        >>> check_ids(("b", "a"), "predictions[0]", what="ranking")
        ['b', 'a']
    """
    ids = value if isinstance(value, list) else _listable(value, where, what, ordered)
    if not ids:
        if allow_empty:
            return ids
        raise InputError(f"{where} is an empty {what}. Fix: name at least one image.")
    if not is_text(ids):
        for position, each in enumerate(ids):
            check_id(each, f"{where}[{position}]")
    distinct = set(ids)
    if "" in distinct:
        raise InputError(
            f"{where}[{ids.index('')}] is an empty string, which is not an image id. Fix: name the image."
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
            f"{where} is {quoted(value)}; a session is a list of rankings. Fix: give one ranking a turn."
        )
    _refuse_set(value, where, "a session is a list of rankings, one a turn")
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


def check_id(value: object, where: str) -> str:
    """An image id: a string that is not empty, and Unicode text.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_id("a", "predictions[0][0]")
        'a'
    """
    if not isinstance(value, str):
        fix = "drop it" if value is None else f"write {str(value)!r} if that is the id"
        raise InputError(f"{where} is {quoted(value)}; an image id is a string. Fix: {fix}.")
    if not value:
        raise InputError(f"{where} is an empty string, which is not an image id. Fix: name the image.")
    if not is_text([value]):
        raise InputError(
            f"{where} is {quoted(value)}, which holds half of a surrogate pair and is not Unicode text. "
            "Fix: write the id as it was before it was decoded."
        )
    return str(value)


def is_text(ids: Sequence[Any]) -> bool:
    """Whether all are strings of whole Unicode characters, told quickly.

    Example:
        >>> is_text(["a", "é"]), is_text(["a", 1]), is_text(["\\ud800"])
        (True, False, False)
    """
    try:
        # Quicker than asking each for its type: joining refuses whatever is not a string.
        joined = "".join(ids)
    except TypeError:
        return False
    if not joined.isascii():
        try:
            joined.encode()
        except UnicodeEncodeError:
            return False
    return True


def _listable(value: object, where: str, what: str, ordered: bool) -> list[Any]:
    if ordered:
        _refuse_set(value, where, f"a {what} is a list of image ids")
    if value is None or isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InputError(
            f"{where} is {quoted(value)}; a {what} is a list of image ids. Fix: pass a list of strings."
        )
    return value.tolist() if isinstance(value, np.ndarray) else list(value)


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


def quoted(value: object) -> str:
    """A value as messages show it, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _refuse_set(value: object, where: str, wanted: str) -> None:
    if isinstance(value, (set, frozenset)):
        raise InputError(
            f"{where} is a set, which has no order; {wanted}. Fix: pass a list, in the order that is meant."
        )
