"""Files of rows that people and pipelines write: JSON Lines, CSV or Parquet, one row at a time.

In CSV a list is written with `|` between its items, and a session is a line for each of its turns. Lines
count from 1 in messages, the header of a CSV file included; rows of Parquet count from 1, too.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cir_datasets.common.paths import regular
from cir_datasets.common.strict_json import DECODER
from cir_datasets.errors import RecordError

Fields = dict[str, Any]

ENDINGS = (".jsonl", ".parquet", ".csv")
"""What the name of a file of rows ends with."""
ID, TEXT, WHOLE, IDS, TEXTS, ITEMS = "an id", "text", "a whole number", "ids", "texts", "objects"
VIDEO_CATEGORIES = ("video_category", "video_subcategory")

QUERY = {
    "query_id": ID,
    "reference_image_id": ID,
    "relative_caption": TEXT,
    "captions": TEXTS,
    "target_image_id": ID,
    "positive_image_ids": IDS,
    "negative_image_ids": IDS,
    "subset_image_ids": IDS,
    "aspects": IDS,
}
"""Fields of a query and what each holds."""
EXTRA_OF_QUERY = {
    "gallery_image_ids": IDS,
    "subset_id": WHOLE,
    "auxiliary_captions": TEXTS,
    "target_soft": ITEMS,
    **dict.fromkeys(VIDEO_CATEGORIES, TEXT),
}
"""Fields of a query that most have not: a column only where the first row has them."""
SESSION = {
    "session_id": ID,
    "subset": TEXT,
    "ground_truth_ids": IDS,
    "num_turns": WHOLE,
    "turns": ITEMS,
}
TURN = {"turn": WHOLE, "reference_image_id": ID, "relative_caption": TEXT}
EXTRA_OF_TURN = {"captions": TEXTS}
"""Field of a turn that has several captions: a column only where the first row has it."""

_KINDS = {**QUERY, **EXTRA_OF_QUERY, **SESSION, **TURN}
_BETWEEN = "|"
_BATCH_ROWS = 4096


@dataclass
class Tallied:
    """What a file of rows holds, as far as a card says it."""

    rows: int = 0
    turns: Counter[int] = field(default_factory=Counter)
    """Sessions by number of turns; empty where the rows are queries."""
    first: Fields = field(default_factory=dict)
    """The fields of the first row."""

    @property
    def multi_turn(self) -> bool:
        """Whether the rows are sessions."""
        return any(self.first.get(name) is not None for name in ("session_id", "turns"))

    @property
    def extra(self) -> tuple[str, ...]:
        """The further fields that the first row has."""
        if not self.multi_turn:
            return tuple(name for name in EXTRA_OF_QUERY if name in self.first)
        turns = self.first.get("turns")
        listed = [turn for turn in turns if isinstance(turn, dict)] if isinstance(turns, list) else []
        return tuple(name for name in EXTRA_OF_TURN if any(name in turn for turn in listed))


def unit(path: Path) -> str:
    """What messages count in a file: `line`, or `row` of Parquet.

    Example:
        >>> unit(Path("queries.csv"))
        'line'
    """
    return "row" if path.suffix == ".parquet" else "line"


def read_row_file(path: Path) -> Iterator[tuple[int, Fields | str]]:
    """The rows of a file, each with its number; instead of the fields what is wrong with a line.

    Raises:
        RecordError: the file cannot be read, has another ending than `ENDINGS`, or a wrong CSV header.
    """
    if path.suffix == ".parquet":
        return _parquet(path)
    if path.suffix == ".csv":
        return _csv(path)
    if path.suffix == ".jsonl":
        return _json_lines(path)
    raise RecordError(
        f"{path}: rows are JSON Lines, Parquet or CSV. Fix: let the file's name end in {', '.join(ENDINGS)}."
    )


def tally(path: Path) -> Tallied:
    """Count the rows of a file; a line that is wrong is counted, too.

    Raises:
        RecordError: as for `read_row_file`; or the first line is wrong.
    """
    found, wrong = Tallied(), False
    for number, fields in read_row_file(path):
        found.rows += 1
        wrong = wrong or isinstance(fields, str)
        if found.rows == 1:
            if isinstance(fields, str):
                raise RecordError(f"{path}: {unit(path)} {number}: {fields}")
            found.first = fields
            if not found.multi_turn and path.suffix != ".csv":
                found.rows += _left(path, number)
                return found
        turns = fields.get("turns") if isinstance(fields, dict) else None
        if isinstance(turns, list):
            found.turns[len(turns)] += 1
    if wrong:
        found.turns.clear()  # some sessions are wrong, so this would be a count of the others
    if not found.rows:
        raise RecordError(f"{path}: it holds no row. Fix: write queries or sessions, one a {unit(path)}.")
    return found


def _left(path: Path, first: int) -> int:
    """How many rows follow the first, which no row needs to be parsed for."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return int(pq.ParquetFile(path).metadata.num_rows) - 1
    with path.open("rb") as lines:
        return sum(bool(line.strip()) for number, line in enumerate(lines, start=1) if number > first)


def text_lines(path: Path) -> Iterator[tuple[int, str | None]]:
    """The lines of a text file that are not blank, without their ends; None for one that is not UTF-8.

    A byte-order mark, which some editors write, is left out.

    Raises:
        RecordError: the file cannot be read.
    """
    try:
        with regular(path).open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                whole = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                try:
                    text = whole.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    yield number, None
                    continue
                if text.strip():
                    yield number, text
    except OSError as error:
        raise unreadable(path, error) from error


NOT_UTF8 = "it is not UTF-8. Fix: save the file as UTF-8."


def unreadable(path: Path, error: OSError) -> RecordError:
    """The error of a file that cannot be opened."""
    what = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
    return RecordError(f"{path}: {what}. Fix: write it, or correct its name in card.yaml.")


def _json_lines(path: Path) -> Iterator[tuple[int, Fields | str]]:
    for number, text in text_lines(path):
        yield number, NOT_UTF8 if text is None else _json_line(text)


def _json_line(text: str) -> Fields | str:
    try:
        row = DECODER.decode(text)
    except json.JSONDecodeError as error:
        return f"it is not JSON: {error.msg} (column {error.colno}). Fix: write one JSON object a line."
    except (ValueError, RecursionError) as error:
        return f"it is not JSON as it is read here: {error}. Fix: correct that line."
    if not isinstance(row, dict):
        return 'it is not an object. Fix: write fields, such as {"query_id": "1", ...}.'
    return row


def _csv(path: Path) -> Iterator[tuple[int, Fields | str]]:
    try:
        text = regular(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: byte {error.start}: {NOT_UTF8}") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(path, header)
        rows = _cells(reader, header)
        yield from _sessions(rows) if "session_id" in header else rows
    except csv.Error as error:
        raise RecordError(
            f"{path}: line {reader.line_num}: it is not CSV: {error}. Fix: put text with commas, quotes or "
            'line ends into "...", with "" for a quote.'
        ) from error


def _check_header(path: Path, header: list[str]) -> None:
    where = f"{path}: line 1: the header"
    if "query_id" not in header and "session_id" not in header:
        shown = ",".join(header)[:80]
        other = next((f"{sign!r}" for sign in (";", "\t") if len(header) == 1 and sign in header[0]), None)
        if other is not None:
            raise RecordError(
                f"{where} {shown!r} has {other} between its fields. Fix: save the file with commas there."
            )
        raise RecordError(
            f"{where} {shown!r} has neither query_id nor session_id. Fix: write the fields' names first, "
            "separated by commas: query_id,reference_image_id,relative_caption,target_image_id"
        )
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise RecordError(f"{where} names {twice[0]!r} twice. Fix: keep one of the two columns.")
    refused = sorted(name for name in header if _KINDS.get(name) == ITEMS)
    if refused:
        raise RecordError(
            f"{where} names {refused[0]!r}, which no cell can hold. Fix: write JSON Lines"
            + (", or a line for each turn." if refused == ["turns"] else ".")
        )


def _cells(reader: Any, header: list[str]) -> Iterator[tuple[int, Fields | str]]:
    while True:
        first = reader.line_num + 1
        row = next(reader, None)
        if row is None:
            return
        if not row:
            continue  # a blank line
        if len(row) != len(header):
            yield (
                first,
                (
                    f"it has {len(row)} cells, the first {row[0][:40]!r}, but the header {len(header)}. "
                    'Fix: write as many commas as it has, and text with commas into "...".'
                ),
            )
            continue
        yield first, {name: _cell(name, text) for name, text in zip(header, row, strict=True) if text != ""}


def _cell(name: str, text: str) -> Any:
    kind = _KINDS.get(name)
    if kind in (IDS, TEXTS):
        as_elsewhere = name.endswith("_ids") and text.startswith("[") and text.endswith("]")
        return text if as_elsewhere else text.split(_BETWEEN)
    if kind == WHOLE and text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    return text


def _sessions(rows: Iterator[tuple[int, Fields | str]]) -> Iterator[tuple[int, Fields | str]]:
    """Lines of turns as sessions: those of one id that follow each other."""
    open_: tuple[int, Fields] | None = None
    for number, row in rows:
        if isinstance(row, str):
            yield number, row
            continue
        turn = {name: row.pop(name) for name in (*TURN, *EXTRA_OF_TURN) if name in row}
        if open_ is not None and open_[1].get("session_id") == row.get("session_id"):
            changed = [name for name, value in row.items() if open_[1].get(name) != value]
            if changed:
                yield (
                    number,
                    (
                        f"{changed[0]!r} is another than in line {open_[0]}, where it begins. Fix: write it "
                        "in the session's first line alone, or the same in each."
                    ),
                )
                continue
            open_[1]["turns"].append(turn)
            continue
        if open_ is not None:
            yield open_
        open_ = (number, {**row, "turns": [turn]})
    if open_ is not None:
        yield open_


def _parquet(path: Path) -> Iterator[tuple[int, Fields | str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        file = pq.ParquetFile(regular(path))
        twice = [name for name, count in Counter(file.schema_arrow.names).items() if count > 1]
        if twice:
            raise RecordError(f"{path}: two columns are named {twice[0]!r}. Fix: keep one of them.")
        for batch in file.iter_batches(_BATCH_ROWS):
            for row in batch.to_pylist():
                number += 1
                yield number, row
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        said = str(error).rstrip(".")
        raise RecordError(f"{path}: it cannot be read as Parquet: {said}. Fix: write it anew.") from error
    except OSError as error:
        raise unreadable(path, error) from error
