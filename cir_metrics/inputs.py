"""Checks of what callers hand in: rankings and lists of image ids, cutoffs, arrays of ranks and masks.

Every error names the position and the value and says how to mend it; nothing is dropped and nothing guessed.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cir_metrics.catalogue import check_variant
from cir_metrics.coding import UNLISTED, BoolArray, IntArray
from cir_metrics.errors import InputError
from cir_metrics.ids import as_list, order_fault, plain_id


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
    if not is_whole(k):
        raise InputError(f"k={k!r}; a cutoff is a whole number, 1 or more. Fix: pass k=10, say.")
    if k < 1:
        raise InputError(f"k={int(k)}; a cutoff is 1 or more. Fix: pass k=10, say.")
    return int(k)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number, of Python or numpy, and not a truth value.

    Example:
        >>> is_whole(np.int64(5)), is_whole(5.0), is_whole(True)
        (True, False, False)
    """
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


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


def check_ranks(ranks: ArrayLike, k: int) -> tuple[IntArray, int]:
    """What a metric of one rank a query is computed from: shape (n_queries,), 1-based.

    Raises:
        InputError: `ranks` is empty, not one-dimensional, not whole numbers, or holds one below 1; k < 1.
    """
    return _ranks_from_one(ranks), check_cutoff(k)


def check_listed_ranks(ranks: ArrayLike) -> tuple[IntArray]:
    """Ranks that all are numbers of places: as `check_ranks`, none of them `UNLISTED`.

    Raises:
        InputError: as `check_ranks`; a rank that is `UNLISTED`.
    """
    array = _ranks_from_one(ranks)
    unlisted = np.flatnonzero(array == UNLISTED)
    if unlisted.size:
        raise InputError(
            f"ranks[{int(unlisted[0])}] is UNLISTED. Fix: give unlisted targets a rank by coding.censor."
        )
    return (array,)


def check_positives(positive: ArrayLike, n_positives: ArrayLike, k: int) -> tuple[BoolArray, IntArray, int]:
    """What a metric of several positives is computed from: a mask, and how many positives each query has.

    Raises:
        InputError: a mask that is not boolean of shape (n_queries, depth), no queries, a query without
            positives or with more marked than it has; k < 1.
    """
    return *_mask_and_counts(positive, n_positives), check_cutoff(k)


def check_negatives(
    positive: ArrayLike, negative: ArrayLike, n_positives: ArrayLike, k: int, variant: str = "equation"
) -> tuple[BoolArray, BoolArray, IntArray, int, str]:
    """What PNR-mAP is computed from: as `check_positives`, and a mask of the hard negatives.

    Raises:
        InputError: as `check_positives`; masks of different shapes, a place that holds both, an unknown
            variant.
    """
    mask, counts = _mask_and_counts(positive, n_positives)
    negatives = _mask(negative, "negative")
    if negatives.shape != mask.shape:
        raise InputError(
            f"positive has shape {mask.shape}, negative {negatives.shape}. Fix: code both to one depth."
        )
    both = np.argwhere(mask & negatives)
    if len(both):
        query, place = (int(each) for each in both[0])
        raise InputError(
            f"place [{query}, {place}] is positive and hard negative. Fix: an image is one of the two."
        )
    variant = check_variant("pnr_map", variant)
    return mask, negatives, counts, check_cutoff(k), variant


def check_sessions(ranks: ArrayLike, num_turns: ArrayLike, k: int) -> tuple[IntArray, IntArray, int]:
    """What a metric of sessions is computed from: ranks up to the longest session's last turn, and turns.

    Raises:
        InputError: ranks that are not whole numbers of 1 or more of shape (n_sessions, max_turns), no
            sessions, a number of turns outside 1..max_turns; k < 1.
    """
    table = _ranks(ranks, dimensions=2)
    turns = as_array(num_turns, "num_turns")
    if turns.shape != table.shape[:1] or turns.dtype.kind not in "iu":
        raise InputError(
            f"num_turns has shape {turns.shape} and type {turns.dtype}. Fix: pass {len(table)} integers."
        )
    outside = np.flatnonzero((turns < 1) | (turns > table.shape[1]))
    if outside.size:
        session = int(outside[0])
        raise InputError(
            f"num_turns[{session}] is {turns[session]}, ranks hold {table.shape[1]} turns. "
            f"Fix: use 1 to {table.shape[1]}."
        )
    longest = int(turns.max())
    table = table[:, :longest]
    _refuse_below_one(table, np.arange(longest) < turns[:, None])
    return table, turns.astype(np.int64), check_cutoff(k)


def _ranks(ranks: ArrayLike, *, dimensions: int = 1) -> IntArray:
    array = as_array(ranks, "ranks")
    shape = "(n_queries,)" if dimensions == 1 else "(n_sessions, max_turns)"
    if array.ndim != dimensions or array.size == 0:
        raise InputError(f"ranks have shape {array.shape}. Fix: pass shape {shape}, with at least one query.")
    if array.dtype.kind not in "iu":
        raise InputError(f"ranks are {array.dtype}; a rank is a whole number. Fix: pass integers.")
    return array.astype(np.int64)


def _ranks_from_one(ranks: ArrayLike) -> IntArray:
    array = _ranks(ranks)
    _refuse_below_one(array, np.ones_like(array, dtype=np.bool_))
    return array


def _refuse_below_one(ranks: IntArray, read: BoolArray) -> None:
    below = np.argwhere((ranks < 1) & read)
    if len(below):
        position = tuple(int(each) for each in below[0])
        where = ", ".join(map(str, position))
        raise InputError(
            f"ranks[{where}] is {ranks[position]}; ranks count from 1. Fix: add 1 to 0-based ranks."
        )


def _mask(mask: ArrayLike, name: str) -> BoolArray:
    array = as_array(mask, name)
    if array.ndim != 2 or array.shape[0] == 0 or array.dtype.kind != "b":
        raise InputError(
            f"{name} has shape {array.shape} and type {array.dtype}. "
            "Fix: pass booleans of shape (n_queries, depth)."
        )
    return array.astype(np.bool_)


def _mask_and_counts(positive: ArrayLike, n_positives: ArrayLike) -> tuple[BoolArray, IntArray]:
    mask = _mask(positive, "positive")
    counts = as_array(n_positives, "n_positives")
    if counts.shape != mask.shape[:1] or counts.dtype.kind not in "iu":
        raise InputError(
            f"n_positives has shape {counts.shape} and type {counts.dtype}. Fix: pass {len(mask)} integers."
        )
    marked = mask.sum(axis=1)
    for query in np.flatnonzero((counts < 1) | (marked > counts)):
        raise InputError(
            f"n_positives[{query}] is {counts[query]}, {marked[query]} are marked. Fix: count all, 1 or more."
        )
    return mask, counts.astype(np.int64)
