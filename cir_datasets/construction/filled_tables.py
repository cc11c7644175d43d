"""CSV files that people fill in, as spreadsheets and pages save them, with the line of each record."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path

from cir_metrics.errors import CirError

Line = tuple[int, dict[str, str]]
"""Number of the line that a record begins in, and its fields without blanks around them."""


def read_filled(
    path: Path, needed: Sequence[str], error: Callable[[str], CirError], *, fix: str
) -> list[Line]:
    """The records of a file that people filled in; empty ones are passed over.

    Fields are parted by commas, or by semicolons as spreadsheets of some countries save them.

    Args:
        path: the file, UTF-8.
        needed: columns that must be there.
        error: makes the error of a message.
        fix: what to do when a column is missing.

    Raises:
        CirError: of `error`: the file cannot be read, is not CSV, lacks a column or has one twice, or a
            record has more fields than there are columns; the message has the line.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise error(f"{path}: byte {fault.start} is not UTF-8. Fix: save it as UTF-8.") from fault
    except OSError as fault:
        raise error(f"{path}: cannot be read: {fault.strerror}. Fix: check the path.") from fault
    head = text.split("\n", 1)[0]
    delimiter = ";" if head.count(";") > head.count(",") else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    found: list[Line] = []
    begins = 1
    try:
        columns = [name.strip() for name in next(reader, [])]
        missing = [name for name in needed if name not in columns]
        if missing:
            raise error(f"{path}: line 1 does not name the columns {', '.join(missing)}. Fix: {fix}")
        twice = sorted({name for name in columns if name and columns.count(name) > 1})
        if twice:
            raise error(f"{path}: line 1 names {', '.join(twice)} twice. Fix: keep one of them.")
        begins = reader.line_num + 1
        for cells in reader:
            fields = [cell.strip() for cell in cells]
            if any(fields[len(columns) :]):
                raise error(
                    f"{path}: line {begins}: {len(fields)} fields, and line 1 names {len(columns)} columns. "
                    f"Fix: put text with {delimiter!r} in quotation marks."
                )
            if any(fields):
                fields += [""] * (len(columns) - len(fields))
                found.append((begins, dict(zip(columns, fields, strict=False))))
            begins = reader.line_num + 1
    except csv.Error as fault:
        raise error(
            f"{path}: line {begins}: it is not CSV: {fault}. Fix: correct the quotation marks there."
        ) from fault
    return found
