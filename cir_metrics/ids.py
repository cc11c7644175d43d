"""Ids as they are handed in: what an ordered list of them is, how one is spelled, and what is there twice.

Every door that takes rankings or ids asks here, and says in its own words what is wrong. Nothing is imported
to recognise an array, a tensor or a data frame of another library.
"""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, MappingView, Sequence, Set
from types import MappingProxyType
from typing import Any

DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of text: what is shown beside it would read otherwise."""
QUERY, SESSION = "query_id", "session_id"
"""What a row says its id under."""
_IDS_OF_ROWS = frozenset({QUERY, SESSION})
_SESSION_MARKS = frozenset({"turns", "ground_truth_ids"})
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
        return (
            f"a {'set' if isinstance(value, set | frozenset) else type(value).__name__}, which has no order"
        )
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
    listed = getattr(value, "tolist", None)
    return list(listed() if callable(listed) else value)


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
    rows = as_list(value)
    named = False
    if is_frame(value):
        named = not _IDS_OF_ROWS.isdisjoint(value.columns)
        rows = [
            {key: each for key, each in row.items() if not _is_missing(each)}
            for row in value.to_dict("records")
        ]
    ids = None if named else index_ids(value)
    return rows if ids is None else [_with_id(row, each) for row, each in zip(rows, ids, strict=True)]


def _with_id(row: Any, own: str | None) -> Any:
    if own is None or not isinstance(row, Mapping) or not _IDS_OF_ROWS.isdisjoint(row):
        return row
    return {QUERY if _SESSION_MARKS.isdisjoint(row) else SESSION: own, **row}


def named_entries(value: Any) -> list[tuple[Any, Any]] | None:
    """Entries with their names: of a mapping, or a data frame or series, whose index names them; else None.

    Example:
        >>> named_entries({5: ["a"]}), named_entries([["a"]])
        ([(5, ['a'])], None)
    """
    if isinstance(value, Mapping):
        return list(value.items())
    return list(zip(value.index.tolist(), as_list(value), strict=True)) if hasattr(value, "iloc") else None


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _without_tail(row: list[Any]) -> list[Any]:
    """A row without the empty cells behind its last entry: rankings differ in length."""
    end = len(row)
    while end and _is_missing(row[end - 1]):
        end -= 1
    return row[:end]


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


def respelled(
    rankings: Sequence[list[str]], known: Collection[str]
) -> tuple[list[list[str]], tuple[int, str] | None]:
    """Rankings in the spelling of the known ids, and the first that then names an image twice, with it.

    Example:
        >>> respelled([["a.png", "b"], ["a", "x/a"]], {"a"})
        ([['a', 'b'], ['a', 'a']], (1, 'a'))
    """
    changed = spellings(set().union(*rankings), known)
    if not changed:
        return list(rankings), None
    written = [
        ids if changed.keys().isdisjoint(ids) else [changed.get(each, each) for each in ids]
        for ids in rankings
    ]
    for place, ids in enumerate(written):
        if ids is not rankings[place] and len(set(ids)) < len(ids):
            return written, (place, next(each for n, each in enumerate(ids) if each in ids[:n]))
    return written, None


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


def warn_of_padding(name: str, keys: Sequence[str | None], kept: Sequence[int]) -> None:
    """Say which answers are there again and count once.

    Args:
        name: what holds the answers.
        keys: id of each answer's query.
        kept: the places that count.
    """
    again = [keys[place] for place in sorted(set(range(len(keys))).difference(kept))]
    warnings.warn(
        f"{name}: {len(again):,} repeated answers, to {again[0]!r} first, equal earlier ones and count once. "
        "(Samplers of several processes fill their last batches so.) Fix: drop the repeated rows.",
        stacklevel=4,
    )
