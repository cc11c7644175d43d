"""Checks of what callers hand in: rankings and lists of image ids, cutoffs.

Every error names the position and the value and says how to mend it; nothing is dropped and nothing guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cir_metrics.errors import InputError
from cir_metrics.ids import as_list, order_fault, plain_id
from cir_metrics.sums import check_cutoff


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


def check_list(value: object, name: str) -> list[Any]:
    """`value` as a list, whatever held it (list, tuple, array, tensor, data frame, column of a dataset).

    Raises:
        InputError: it is None, a string, a dict, a set or a view of a dict, or cannot be listed.
    """
    return _listed(value, name, "it must be a list, one entry a query", "give one entry a query")


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
        The ids as a list of strings, whole numbers as their digits; the very list given, where it is one.

    Raises:
        InputError: not a list, empty, an entry that is no id, an empty one or no Unicode text, an id given
            twice.

    Example:
        >>> check_ids(("b", "a"), "predictions[0]", what="ranking")
        ['b', 'a']
    """
    ids = value
    if not isinstance(ids, list):
        unordered = not ordered and isinstance(value, set | frozenset)
        said = f"a {what} is a list of image ids"
        ids = list(value) if unordered else _listed(value, where, said, "pass a list of strings")  # type: ignore[call-overload]
    if not ids:
        if allow_empty:
            return ids
        raise InputError(f"{where} is an empty {what}. Fix: name at least one image.")
    if not is_text(ids):
        ids = [check_id(each, f"{where}[{position}]") for position, each in enumerate(ids)]
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
    turns = _listed(value, where, "a session is a list of rankings, one a turn", "give one ranking a turn")
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
    """An image id: a string that is not empty, and Unicode text; a whole number is its digits.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_id("a", "predictions[0][0]"), check_id(355099, "predictions[0][1]")
        ('a', '355099')
    """
    text = plain_id(value)
    if text is None:
        # A column of numbers with a gap is one of floats in pandas.
        text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        fix = "drop it" if value is None else f"write {text!r} if that is the id"
        raise InputError(f"{where} is {quoted(value)}; an image id is a string. Fix: {fix}.")
    if not text:
        raise InputError(f"{where} is an empty string, which is not an image id. Fix: name the image.")
    if not is_text([text]):
        raise InputError(
            f"{where} is {quoted(value)}, which holds half of a surrogate pair and is not Unicode text. "
            "Fix: write the id as it was before it was decoded."
        )
    return text


def is_text(ids: Sequence[Any]) -> bool:
    """Whether all are strings of whole Unicode characters, found out quickly.

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


def _listed(value: object, where: str, what: str, fix: str) -> list[Any]:
    fault = order_fault(value)
    if fault is None:
        try:
            return as_list(value)
        except TypeError:  # An array without a dimension.
            fault = "one value"
    if "no order" in fault:
        raise InputError(f"{where} is {fault}; {what}. Fix: pass a list, in the order that is meant.")
    raise InputError(f"{where} is {quoted(value)}; {what.partition(',')[0]}. Fix: {fix}.")


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
