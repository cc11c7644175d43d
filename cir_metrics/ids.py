"""Ids as they are handed in: what an ordered list of them is, its checks, and how ids are spelled.

Every door that takes rankings or ids asks here. A refusal names the place and the value and says how to mend
it; nothing is dropped and nothing guessed. Nothing is imported to recognise an array, a tensor or a data
frame of another library.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MappingView, Sequence, Set
from typing import Any

from cir_metrics.errors import InputError

DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of text: what is shown beside it would read otherwise."""
_ENDING = re.compile(r"\.(?:png|jpe?g|webp|bmp|gif|tiff?)", re.IGNORECASE)
_LONGEST = 300
"""Characters of an id whose spelling is looked at, and (below) folders before its name: each costs a try."""
_FOLDERS = 4
_DRESSED = frozenset("/\\.")
_LIKELY, _CERTAIN = 30, 1000
"""Places that should have held a known id by chance: enough to ask, and so many that nobody misses all."""


def plain_id(value: object) -> str | None:
    """An id as text: a text, or a whole number of any library; None for what is no id.

    Example:
        >>> plain_id("a"), plain_id(12063), plain_id(1.5), plain_id(True)
        ('a', '12063', None, None)
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return None
    try:
        # Arrays and tensors of one whole number are such a number, too.
        return str(operator.index(value))  # type: ignore[arg-type]  # a TypeError is the answer
    except (TypeError, ValueError):
        return None


def order_fault(value: object) -> str | None:
    """Why a value is no ordered list of entries, as the end of a sentence; None for one that is.

    Example:
        >>> order_fault({"a", "b"}), order_fault("a"), order_fault(("a", "b"))
        ('a set, which has no order', 'of type str', None)
    """
    if isinstance(value, Set | MappingView):
        kind = "set" if isinstance(value, set | frozenset) else type(value).__name__
        return f"a {kind}, which has no order"
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return f"of type {type(value).__name__}"
    return None


def is_frame(value: object) -> bool:
    """Whether it is a data frame of pandas."""
    return hasattr(value, "iloc") and hasattr(value, "columns")


def as_list(value: Any) -> list[Any]:
    """The entries of an ordered list, whatever holds them: a data frame's are its rows.

    Example:
        >>> import numpy as np
        >>> as_list(np.arange(6).reshape(2, 3)), as_list(("a", "b"))
        ([[0, 1, 2], [3, 4, 5]], ['a', 'b'])
    """
    if is_frame(value):
        return [_without_tail(row) for row in value.to_numpy(dtype=object).tolist()]
    return list(value.tolist() if hasattr(value, "tolist") else value)


def is_missing(value: Any) -> bool:
    """Whether a cell of a data frame is empty."""
    return value is None or (isinstance(value, float) and value != value)


def _without_tail(row: list[Any]) -> list[Any]:
    """A row without the empty cells behind its last entry: rankings differ in length."""
    end = len(row)
    while end and is_missing(row[end - 1]):
        end -= 1
    return row[:end]


def check_list(
    value: object,
    where: str,
    what: str = "it must be a list, one entry a query",
    fix: str = "give one entry a query",
) -> list[Any]:
    """`value` as a list, whatever held it (list, tuple, array, tensor, data frame, column of a dataset).

    Args:
        value: what was given.
        where: how messages name it.
        what: what it should be.
        fix: how that is given.

    Raises:
        InputError: it is None, a string, a dict, a set or a view of a dict, or cannot be listed.
    """
    fault = order_fault(value)
    if fault is None:
        try:
            return as_list(value)
        except TypeError:  # An array without a dimension.
            fault = "one value"
    if "no order" in fault:
        raise InputError(f"{where} is {fault}; {what}. Fix: pass a list, in the order that is meant.")
    raise InputError(f"{where} is {quoted(value)}; {what.partition(',')[0]}. Fix: {fix}.")


def check_ids(
    value: object,
    where: str,
    *,
    what: str,
    of: str = "an image",
    allow_empty: bool = False,
    ordered: bool = True,
    distinct: bool = True,
    at: Callable[[int], str] | None = None,
) -> list[str]:
    """A list of ids.

    Args:
        value: what was given.
        where: how messages name it, such as `predictions[3]`.
        what: what it should be, such as `ranking`.
        of: what has the ids.
        allow_empty: whether it may hold nothing.
        ordered: whether the order says something, so that a set will not do.
        distinct: whether an id may stand there once.
        at: how messages name a place, from 0; None: `where[place]`.

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
        said = f"a {what} is a list of {of.partition(' ')[2]} ids"
        ids = list(value) if unordered else check_list(value, where, said, "pass a list of strings")  # type: ignore[call-overload]
    if not ids:
        if allow_empty:
            return ids
        raise InputError(f"{where} is an empty {what}. Fix: name at least one image.")
    if not is_text(ids) or "" in ids:
        named = at or (lambda place: f"{where}[{place}]")
        ids = [check_id(each, named(place), of) for place, each in enumerate(ids)]
    if distinct and len(set(ids)) != len(ids):
        first: dict[str, int] = {}
        for place, image_id in enumerate(ids):
            if first.setdefault(image_id, place) != place:
                raise InputError(
                    f"{where}[{place}] is {image_id!r}, which stands at [{first[image_id]}] already; a "
                    f"{what} names an image once. Fix: keep the first."
                )
    return ids


def check_id(value: object, where: str, of: str = "an image") -> str:
    """An id: a string that is not empty, and Unicode text; a whole number is its digits.

    Args:
        value: what was given.
        where: how messages name it.
        of: what has the id.

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
        raise InputError(f"{where} is {quoted(value)}; {of} id is a string. Fix: {fix}.")
    if not text:
        raise InputError(
            f"{where} is an empty string, which is not {of} id. Fix: name the {of.partition(' ')[2]}."
        )
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


def quoted(value: object) -> str:
    """A value as messages show it, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def spellings(
    ids: Iterable[Any], known: Collection[str], *, digits: int | None = None, ending: str = ""
) -> dict[Any, str]:
    """The known ids that others spell in another way: by what they are spelled, how they are known.

    A known id is itself, whatever it looks like. Any other is the known id that is left of it without the
    folders before its name, without the ending of a picture's file, or without leading zeros.

    Args:
        ids: what was handed in: texts or whole numbers.
        known: the ids of the gallery, or those that references name: a set, where they are many.
        digits: where all ids are numbers of so many digits, known or not.
        ending: what no id ends with, known or not.

    Example:
        >>> spellings(["a", "img/a.png", "b.jpg", 7], {"a", "007"})
        {'img/a.png': 'a', 7: '007'}
        >>> spellings([7, "unlabeled2017/000000000008.jpg", "x"], (), digits=4)
        {7: '0007', 'unlabeled2017/000000000008.jpg': '0008'}
    """
    there = known if isinstance(known, Set) else frozenset(known)
    numbers: dict[str, str | None] | None = None
    changed: dict[Any, str] = {}
    for given in ids:
        text = plain_id(given)
        if text is None or given in there or len(text) > _LONGEST:
            continue
        if given is text and not text.isdigit() and _DRESSED.isdisjoint(text):
            continue  # Nothing could be left out: quicker than trying.
        for tail in _tails(text):
            if tail in there:
                changed[given] = tail
                break
            if not (tail.isascii() and tail.isdigit()):
                continue
            number = tail.lstrip("0") or "0"
            if digits is not None and len(number) <= digits:
                changed[given] = number.zfill(digits)
                break
            numbers = _numbers(there) if numbers is None else numbers
            if (found := numbers.get(number)) is not None:
                changed[given] = found
                break
        else:
            if ending and text.endswith(ending):
                changed[given] = text.removesuffix(ending) or text
        if changed.get(given) == given:
            del changed[given]
    return changed


def _tails(text: str) -> Iterator[str]:
    """An id, then what is left of it without its folders, one by one; each also without its ending."""
    parts = text.replace("\\", "/").split("/")
    if not parts[-1]:
        return
    for start in range(max(0, len(parts) - _FOLDERS), len(parts)):
        tail = "/".join(parts[start:])
        yield tail
        stem, dot, ending = tail.rpartition(".")
        if stem and _ENDING.fullmatch(dot + ending):
            yield stem


def _numbers(known: Collection[str]) -> dict[str, str | None]:
    """Known ids of digits by their number; None where several have it."""
    found: dict[str, str | None] = {}
    for each in known:
        if each.isascii() and each.isdigit():
            number = each.lstrip("0") or "0"
            found[number] = None if number in found else each
    return found


def alike(answer: Sequence[Any], known: Collection[str]) -> list[Any]:
    """An answer in one spelling, to tell whether two to one query are equal: a ranking, or one a turn.

    Ids that are known, or are spelled as known ones may be, are these; of any other the plainest spelling
    stands.

    Example:
        >>> alike(["img/a.png", "007.jpg", "b"], {"a"}), alike([["b.png"]], {"a"})
        (['a', '7', 'b'], [['b']])
    """
    if answer and not isinstance(answer[0], str):
        return [alike(turn, known) for turn in answer]
    changed = spellings(answer, known)
    return [each if each in known else changed.get(each) or _plainest(each) for each in answer]


def _plainest(text: str) -> str:
    if _DRESSED.isdisjoint(text):
        return text.lstrip("0") or text
    *_, shortest = (text, *_tails(text))
    return shortest.lstrip("0") or shortest


def stranger(rankings: Sequence[Sequence[str]], known: Set[str]) -> tuple[str, bool] | None:
    """An id of rankings in which no known id stands though chance alone would have put some there; else None.

    Were the gallery all that is ranked or known, places * known / (ranked + known) places would hold a known
    id. From 1,000 such places on nobody misses all; below, a random ranking of a large gallery may.

    Returns:
        The first id, and whether that is certain: because of the number, or since no ranked id is made of the
        same kinds of characters as any known one.

    Example:
        >>> stranger([["x-1", "x-2"]], {"a", "b", "c"}), stranger([["d", "e"]], {"a"})
        (('x-1', True), None)
    """
    if not known or any(not known.isdisjoint(ids) for ids in rankings):
        return None
    ranked = set().union(*rankings)
    places = sum(map(len, rankings))
    expected = places * len(known) / max(1, len(ranked) + len(known))
    alike = not {_kinds(each) for each in ranked}.isdisjoint(map(_kinds, known))
    if not ranked or expected < 1 or (alike and expected < _LIKELY):
        return None
    return next(ids[0] for ids in rankings if ids), not alike or expected >= _CERTAIN


def _kinds(text: str) -> frozenset[str]:
    """Letters, digits, and every other character of an id."""
    return frozenset("a" if c.isalpha() else "9" if c.isdigit() else c for c in text)
