"""Tables that people fill in, as spreadsheets and pages save them, with the line of each record."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from cir_datasets.common.paths import regular
from cir_datasets.common.tables import guarded, unguarded
from cir_metrics.errors import CirError

_SEPARATOR = re.compile(r"\"?sep=(.)\"?[,;\t]*\r?\n", re.IGNORECASE)
"""A first line by which Excel says what parts the columns."""

Line = tuple[int, dict[str, str]]
"""Number of the line that a record begins in, and its fields without blanks around them."""


def filled_table(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> bytes:
    """A table as CSV that a spreadsheet computes nothing of; `read_filled` gives the same texts back.

    Example:
        >>> filled_table(["id", "note"], [{"id": "1", "note": "=1+1"}])
        b"id,note\\r\\n1,'=1+1\\r\\n"
    """
    text = io.StringIO(newline="")
    lines = csv.writer(text, lineterminator="\r\n")
    lines.writerow(columns)
    lines.writerows([guarded(row[name]) for name in columns] for row in rows)
    return text.getvalue().encode()


def read_filled(
    path: Path, needed: Sequence[str], error: Callable[[str], CirError], *, fix: str
) -> list[Line]:
    """The records of a file that people filled in; empty ones are passed over.

    Fields are separated by commas, by semicolons or tabs as spreadsheets save them, or by what a first line
    such as `sep=;` says. The apostrophe that `guarded` put before a formula is taken off.

    Args:
        path: the file, UTF-8 or UTF-16.
        needed: columns that must be there.
        error: makes the error of a message.
        fix: what to do when a column is missing.

    Raises:
        CirError: of `error`: the file cannot be read, is not CSV, lacks a column or has one twice, or a
            record has more fields than there are columns; the message has the line.
    """
    text = read_text(path, error)
    found = table_lines(text, path, needed, error, fix=fix, delimiter=delimiter_of(text))
    return [(line, {name: unguarded(field).strip() for name, field in row.items()}) for line, row in found]


def read_text(path: Path, error: Callable[[str], CirError]) -> str:
    """The text of a file, line ends as they are.

    Args:
        path: the file, UTF-8, or UTF-16 with its mark, as Excel saves it.
        error: makes the error of a message.

    Raises:
        CirError: of `error`: the file cannot be read, or is not UTF-8.
    """
    try:
        content = regular(path).read_bytes()
        marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return content.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError as fault:
        raise error(f"{path}: byte {fault.start} is not UTF-8. Fix: save it as UTF-8.") from fault
    except OSError as fault:
        raise error(f"{path}: cannot be read: {fault.strerror}. Fix: check the path.") from fault


def first_columns(text: str, delimiter: str) -> list[str]:
    """The names that a table's first line gives its columns.

    Example:
        >>> first_columns("sep=;\\nid; caption\\n1;a red, small star", ";")
        ['id', 'caption']
    """
    lines = _SEPARATOR.sub("", text, count=1).splitlines()[:1]
    return [name.strip() for line in csv.reader(lines, delimiter=delimiter) for name in line]


def delimiter_of(text: str) -> str:
    """The comma, semicolon or tab that parts the columns of a table's first line, or what `sep=` says.

    Example:
        >>> delimiter_of("id;caption\\n1;a red, small star")
        ';'
    """
    declaration = _SEPARATOR.match(text)
    return declaration[1] if declaration else max(",;\t", key=text.split("\n", 1)[0].count)


def table_lines(
    text: str,
    path: Path,
    needed: Sequence[str],
    error: Callable[[str], CirError],
    *,
    fix: str,
    delimiter: str,
    head: Sequence[str] | None = None,
    plain: bool = False,
) -> list[Line]:
    """The records of a table; empty ones are passed over.

    Args:
        text: of the file.
        path: the file, for messages.
        needed: columns that must be there.
        error: makes the error of a message.
        fix: what to do when a column is missing.
        delimiter: between fields.
        head: the columns of a file whose first line does not name them.
        plain: whether quotation marks are text.

    Raises:
        CirError: of `error`, as for `read_filled`.
    """
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL,
        strict=True,
    )
    found: list[Line] = []
    begins = 1
    try:
        if head is None and _SEPARATOR.match(text):
            begins = 2
            next(reader)
        first = f"line {begins}"
        columns = [name.strip() for name in (next(reader, []) if head is None else head)]
        missing = [name for name in needed if name not in columns]
        if missing:
            raise error(f"{path}: {first} does not name the columns {', '.join(missing)}. Fix: {fix}")
        twice = sorted({name for name in columns if name and columns.count(name) > 1})
        if twice:
            raise error(f"{path}: {first} names {', '.join(twice)} twice. Fix: keep one of them.")
        begins = reader.line_num + 1
        for cells in reader:
            fields = [cell.strip() for cell in cells]
            if any(fields[len(columns) :]):
                mend = f"put text with {delimiter!r} in quotation marks."
                raise error(
                    f"{path}: line {begins}: {len(fields)} fields, and {first} names {len(columns)} columns. "
                    f"Fix: {'write blanks instead of its tabs.' if plain else mend}"
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
