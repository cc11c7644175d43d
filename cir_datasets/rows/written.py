"""Rows as people and pipelines write them: every field looked at, every fault named, then typed.

The names are those of `records`. A query needs its id, its reference, its text (`relative_caption`, or
`captions` where there are several) and what is right (`target_image_id`, `positive_image_ids` or both); a
session its id, `ground_truth_ids` and `turns`. Everything else may be left out or null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cir_datasets.common.row_files import (
    EXTRA_OF_QUERY,
    EXTRA_OF_TURN,
    ID,
    IDS,
    ITEMS,
    QUERY,
    SESSION,
    TEXT,
    TEXTS,
    TURN,
    WHOLE,
    unit,
)
from cir_datasets.common.terminal import counted
from cir_datasets.rows.records import Row, query_row, query_schema, session_row, session_schema
from cir_metrics.errors import did_you_mean
from cir_metrics.ids import DIRECTION

_NO_TEXT = re.compile(f"[\x00\ud800-\udfff]|{DIRECTION.pattern}")
"""NUL, halves of characters, which no UTF-8 file holds, and what changes the direction of text."""
_CONTROL = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|{DIRECTION.pattern}")
"""What ends a line, what a terminal obeys, what no UTF-8 file holds, and what changes the direction."""
MOST_ID_BYTES = 2**20
"""Of an id in UTF-8: rank files hold no longer one."""
_SHOWN = 60
"""Characters of a value that a message shows."""
_TYPES = {
    TEXT: pa.string(),
    WHOLE: pa.int64(),
    IDS: pa.list_(pa.string()),
    TEXTS: pa.list_(pa.string()),
    ITEMS: pa.list_(pa.struct([("image_id", pa.string()), ("score", pa.float64())])),
}
"""Of the further fields."""
_EXTRA = {**EXTRA_OF_QUERY, **EXTRA_OF_TURN}
_ROLES = {
    "reference_image_id": "reference",
    "target_image_id": "target",
    "positive_image_ids": "positive",
    "negative_image_ids": "hard negative",
    "subset_image_ids": "subset member",
    "gallery_image_ids": "gallery member",
    "ground_truth_ids": "ground truth",
}
_KNOWN = {"query": QUERY | EXTRA_OF_QUERY, "session": SESSION, "turn": TURN | EXTRA_OF_TURN}


def written_schema(multi_turn: bool, extra: Sequence[str]) -> pa.Schema:
    """Arrow schema of such rows.

    Args:
        multi_turn: whether a row is a session.
        extra: the further columns of its file, as `row_files.Tallied.extra` found them.
    """
    fields = [pa.field(name, _TYPES[_EXTRA[name]]) for name in extra]
    return session_schema(*fields) if multi_turn else query_schema(*fields)


def place_of(path: Path, number: int, fields: Mapping[str, Any] | str) -> str:
    """Where a row stands: file, line and, as far as it can be read, its id.

    Example:
        >>> place_of(Path("queries.csv"), 3, {"query_id": "7"})
        'queries.csv: line 3 (query_id 7)'
    """
    place = f"{path}: {unit(path)} {number}"
    for name in ("session_id", "query_id"):
        if not isinstance(fields, str) and isinstance(fields.get(name), str):
            return f"{place} ({name} {fields[name]:.{_SHOWN}})"
    return place


def named_images(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every image that a row names, with its role, whatever else is wrong with the row.

    Example:
        >>> list(named_images({"target_image_id": 5, "positive_image_ids": ["a", None]}))
        [('positive', 'a')]
    """
    for name, role in _ROLES.items():
        value = fields.get(name)
        items = value if name.endswith("s") else [value]
        for image in items if isinstance(items, list) else ():
            if isinstance(image, str):
                yield role, image
    turns = fields.get("turns")
    for place, turn in enumerate(turns if isinstance(turns, list) else (), start=1):
        if isinstance(turn, dict) and isinstance(turn.get("reference_image_id"), str):
            yield f"reference of turn {place}", turn["reference_image_id"]


def id_fault(value: str) -> str | None:
    """Why a text cannot be an id, and the fix; None for one that can.

    Example:
        >>> id_fault("cat 1"), id_fault("cat\\n1")
        (None, "is 'cat\\\\n1': an id has no line breaks or other control characters. Fix: correct it.")
    """
    if not value or value != value.strip():
        return f"is {value!r}: an id is not empty and has no blanks around it. Fix: correct it."
    if _CONTROL.search(value):
        return f"is {_shown(value)}: an id has no line breaks or other control characters. Fix: correct it."
    if len(value) > MOST_ID_BYTES // 4 and len(value.encode()) > MOST_ID_BYTES:
        return f"has {len(value):,} characters, and an id at most {MOST_ID_BYTES:,} bytes. Fix: shorten it."
    return None


def typed(fields: Mapping[str, Any], multi_turn: bool, extra: Sequence[str] = ()) -> tuple[Row, list[str]]:
    """A row, and everything that is wrong with its fields; with a fault the row is not to be used.

    Args:
        fields: as they were written.
        multi_turn: whether it must be a session.
        extra: the further columns of its file.

    Example:
        >>> row, faults = typed({"query_id": "1", "reference_image_id": "a", "relative_caption": "in red",
        ...                      "target_image_id": "b"}, multi_turn=False)
        >>> row["positive_image_ids"], row["captions"], faults
        (['b'], ['in red'], [])
        >>> typed({"captoin": "in red"}, multi_turn=False)[1][0]
        "there is no field 'captoin'. Did you mean 'captions'? Fix: leave it out, or correct its name."
    """
    given = {name: value for name, value in fields.items() if value is not None}
    this, other = ("session", "query") if multi_turn else ("query", "session")
    if f"{other}_id" in given:
        return {}, [f"it is a {other}, and the first row a {this}. Fix: give each kind a folder of its own."]
    faults = list(_faults(given, this, extra))
    if faults:
        return {}, faults
    return (_session if multi_turn else _query)(given, extra), []


def _faults(given: Mapping[str, Any], what: str, extra: Sequence[str]) -> Iterator[str]:
    known = _KNOWN[what]
    for name, value in given.items():
        if name not in known:
            hint = did_you_mean(name, list(known))
            yield f"there is no field {name!r}.{hint} Fix: leave it out, or correct its name."
            continue
        fault = _type_fault(value, known[name])
        if fault is not None:
            yield f"{name} {fault}"
        elif name in (EXTRA_OF_TURN if what == "turn" else EXTRA_OF_QUERY) and name not in extra:
            yield f"{name} is there, but the first row has none. Fix: write it there, too, or in none."
    if what == "session":
        yield from _session_faults(given, extra)
    else:
        yield from (_query_faults if what == "query" else _text_faults)(given)


def _type_fault(value: Any, kind: str) -> str | None:
    """Why a value is not of its field's kind, or None."""
    if kind in (ID, TEXT):
        if not isinstance(value, str):
            return f"must be text, not {_shown(value)}. Fix: write it as text; in JSON in quotation marks."
        if kind == ID:
            return id_fault(value)
        if _NO_TEXT.search(value):
            return f"is {_shown(value)}: it holds a character that is not text. Fix: write it anew."
        return None
    if kind == WHOLE:
        right = isinstance(value, int) and not isinstance(value, bool)
        return None if right else f"must be a whole number, not {_shown(value)}. Fix: write it so."
    if not isinstance(value, list):
        fix = 'write ["..."], also where there is one; in CSV | stands between the items'
        return f"must be a list, not {_shown(value)}. Fix: {fix}."
    if kind == ITEMS:
        wrong = next((item for item in value if not isinstance(item, dict)), None)
        return None if wrong is None else f"holds {_shown(wrong)}, not an object. Fix: write {{...}}."
    for item in value:
        fault = _type_fault(item, ID if kind == IDS else TEXT)
        if fault is not None:
            return f"holds an item that {fault}"
    if kind == IDS and len(set(value)) < len(value):
        twice = next(item for place, item in enumerate(value) if item in value[:place])
        return f"holds {twice!r} twice. Fix: name it once."
    return None


def _text_faults(given: Mapping[str, Any]) -> Iterator[str]:
    caption, captions = given.get("relative_caption"), given.get("captions")
    if caption is None and not captions:
        yield 'it has no text. Fix: write "relative_caption", or "captions" where there are several.'
    texts = [caption, *(captions if isinstance(captions, list) else ())]
    if any(isinstance(text, str) and not text.strip() for text in texts):
        yield "a caption is empty. Fix: write what is to be different, or leave the row out."
    if isinstance(caption, str) and isinstance(captions, list) and captions and captions != [caption]:
        yield "relative_caption and captions differ. Fix: write one of the two."


def _query_faults(given: Mapping[str, Any]) -> Iterator[str]:
    for name in ("query_id", "reference_image_id"):
        if name not in given:
            yield f"{name} is missing. Fix: add it."
    yield from _text_faults(given)
    target, positives = given.get("target_image_id"), given.get("positive_image_ids")
    if target is None and not positives:
        yield "it says no right answer. Fix: add target_image_id, positive_image_ids or both."
    for soft in given.get("target_soft") or ():
        number = soft.get("score") if isinstance(soft, dict) else None
        if not isinstance(soft, dict) or set(soft) != {"image_id", "score"} or isinstance(number, bool):
            yield 'target_soft holds objects {"image_id": "...", "score": 0.5}. Fix: write them so.'
            return
        if not isinstance(number, int | float) or not isinstance(soft["image_id"], str):
            yield "target_soft: image_id is text and score a number. Fix: correct them."
            return


def _session_faults(given: Mapping[str, Any], extra: Sequence[str]) -> Iterator[str]:
    for name in ("session_id", "ground_truth_ids", "turns"):
        if not given.get(name):
            yield f"{name} is missing. Fix: add it."
    turns = given.get("turns")
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        return
    for place, turn in enumerate(turns, start=1):
        kept = {name: value for name, value in turn.items() if value is not None}
        yield from (f"turn {place}: {fault}" for fault in _faults(kept, "turn", extra))
    numbers = [turn.get("turn") for turn in turns]
    if any(number is not None for number in numbers) and numbers != list(range(1, len(turns) + 1)):
        yield f"its turns are numbered {numbers}. Fix: number them 1, 2, 3, ... in this order."
    said = given.get("num_turns")
    if isinstance(said, int) and said != len(turns):
        there = counted(len(turns), "turn")
        yield f"num_turns is {said}, but it has {there}. Fix: correct it, or leave it out."


def _query(given: Mapping[str, Any], extra: Sequence[str]) -> Row:
    target = given.get("target_image_id")
    return query_row(**given) | {
        **_texts(given),
        "positive_image_ids": given.get("positive_image_ids") or [target],
        **{name: _extra_value(name, given) for name in extra},
    }


def _session(given: Mapping[str, Any], extra: Sequence[str]) -> Row:
    texts = [_texts(turn) for turn in given["turns"]]
    asked = (
        (turn.get("reference_image_id"), text["relative_caption"])
        for turn, text in zip(given["turns"], texts, strict=True)
    )
    several = [text["captions"] for text in texts] if extra else ()
    truth = given["ground_truth_ids"]
    return session_row(given["session_id"], given.get("subset", ""), truth, asked, several)


def _texts(given: Mapping[str, Any]) -> Row:
    """Both fields of text, from either; several captions are not joined here."""
    caption, captions = given.get("relative_caption"), given.get("captions")
    if not captions:
        return {"captions": [caption], "relative_caption": caption}
    return {"captions": captions, "relative_caption": captions[0] if len(captions) == 1 else None}


def _extra_value(name: str, given: Mapping[str, Any]) -> Any:
    if name == "target_soft":
        return [{**soft, "score": float(soft["score"])} for soft in given.get(name, ())]
    return given.get(name, [] if _EXTRA[name] in (IDS, TEXTS) else None)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
