"""The one place where the suite writes to a terminal: lines, and tables as wide as the screen.

Nothing that a terminal obeys gets through: names, ids and answers come from files and servers of others. An
escape sequence in one of them could recolour or rewrite what stands on the screen, and a control of text
direction could show a name backwards.

A table is a value: who makes it decides what its cells say. Scores are shown in per cent in a cell's `text`
and kept as fractions in its `value`. The forms for files, such as LaTeX, are in `cir_datasets.common.tables`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cir_metrics.errors import CallError, UnknownNameError, without_passwords

FORMATS = ("table", "json", "csv", "latex", "markdown")
"""Formats that tables are written in; `table` is text for a terminal."""

_OBEYED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls but tab and line feed, and but the line ends of Windows
    "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"  # directions of text, separators of lines
    "\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e007f]"  # halves of characters, annotations, tags
    "|\r(?!\n)"
)
_LAST_OF_ONE_BYTE = 0x1F
_GAP = 2
"""Blanks between columns."""
_SHORTEST = 12
"""Characters that are left of a cell at least."""


def visible(text: str) -> str:
    """A text with what a terminal would obey written out, as `\\x1b` or `\\u202e`; JSON stays the same JSON.

    Line feeds and tabs stay.

    Example:
        >>> print(visible("red: \\x1b[31m, backwards: \\u202e"))
        red: \\x1b[31m, backwards: \\u202e
    """
    return _OBEYED.sub(_written_out, text)


def echo(message: object = "", *, err: bool = False, red: bool = False) -> None:
    """Write a line: data to stdout, words to stderr; words lose the passwords of addresses.

    Args:
        message: shown as text.
        err: whether these are words.
        red: whether it is in red, on a terminal.
    """
    import typer

    text = visible(str(message))
    text = without_passwords(text) if err else text
    typer.echo(typer.style(text, fg=typer.colors.RED) if red else text, err=err)


def echo_json(value: Any, *, ascii_only: bool = True) -> None:
    """Print a value as JSON that people can read.

    Args:
        value: what JSON knows.
        ascii_only: whether other characters are escaped.
    """
    import json

    echo(json.dumps(value, indent=2, ensure_ascii=ascii_only))


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    Args:
        number: how many.
        one: the noun of one.
        many: the noun of several; without it `one` with an s.

    Example:
        >>> counted(1, "query", "queries"), counted(2_000, "query", "queries"), counted(0, "image")
        ('1 query', '2,000 queries', '0 images')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def counted_rows(number: int, multi_turn: bool) -> str:
    """A number of sessions, or of queries.

    Example:
        >>> counted_rows(1, multi_turn=True), counted_rows(3, multi_turn=False)
        ('1 session', '3 queries')
    """
    return counted(number, "session") if multi_turn else counted(number, "query", "queries")


def aligned(rows: Sequence[Sequence[str]], *, right: Container[int] = ()) -> str:
    """Rows of cells as lines of text, without blanks at their ends.

    Args:
        rows: cells, the same number in each row.
        right: places of the columns that are set to the right.

    Example:
        >>> print(aligned([["ID", "QUERIES"], ["a/b", "7"]], right=[1]))
        ID   QUERIES
        a/b        7
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def screen_columns() -> int | None:
    """Characters that a line has room for: COLUMNS, else what the terminal says; None in pipes and files."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and int(chosen):
        return int(chosen)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (AttributeError, OSError, ValueError):  # no terminal, or no descriptor at all
        return None


def fitted(rows: Sequence[Sequence[str]], *, right: Container[int] = (), keep: Sequence[int] = (0, 1)) -> str:
    """Rows of cells as lines that fit the screen: columns are left out and named, no line is wrapped.

    Columns are taken from the left as long as there is room. Where those that stay are too wide alone,
    the middle of the longest texts goes; numbers are never shortened.

    Args:
        rows: cells, the same number in each row, the heads first.
        right: places of the columns that are set to the right.
        keep: places of the columns that stay.

    Returns:
        A line a row, and below them one that names what is left out, where something is.

    Example:
        >>> print(fitted([["ID", "QUERIES"], ["a/b", "7"]], right=[1]))
        ID   QUERIES
        a/b        7
    """
    width = screen_columns()
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    full = sum(widths) + _GAP * (len(widths) - 1)
    if width is None or full <= width:
        return aligned(rows, right=right)
    room = width + _GAP - sum(widths[place] + _GAP for place in range(len(widths)) if place in keep)
    shown = []
    for place, needed in enumerate(widths):
        if place not in keep:
            if needed + _GAP > room:
                continue
            room -= needed + _GAP
        shown.append(place)
    texts = [place for place in shown if place not in right]
    if room < 0 and texts:
        longest = max(texts, key=widths.__getitem__)
        most = max(widths[longest] + room, _SHORTEST)
        rows = [
            [_shortened(cell, most) if place == longest else cell for place, cell in enumerate(row)]
            for row in rows
        ]
    chosen = [[row[place] for place in shown] for row in rows]
    lines = aligned(chosen, right=[new for new, place in enumerate(shown) if place in right])
    missing = ", ".join(head for place, head in enumerate(rows[0]) if place not in shown)
    what = f"left out: {missing}" if missing else "long names are shortened"
    return f"{lines}\nTo fit {width} characters, {what}. All of it: COLUMNS={full} before the command."


def _shortened(cell: str, most: int) -> str:
    return cell if len(cell) <= most else f"{cell[: most - most // 2 - 1]}…{cell[len(cell) - most // 2 :]}"


def _written_out(found: re.Match[str]) -> str:
    number = ord(found.group())
    if number <= _LAST_OF_ONE_BYTE:  # JSON writes these out itself, so that none is left in it
        return f"\\x{number:02x}"
    # The others as JSON writes them: two halves beyond the first 65,536.
    halves = found.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{halves[start : start + 4]}" for start in range(0, len(halves), 4))


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Args:
        text: what is shown, such as `49.83`.
        value: the number behind it in full precision (scores: a fraction), or None where it is not a number.
        superscript: marks shown behind the text, such as the letters of the methods that it beats.
        bold: whether it stands out; a star in a terminal.
        underline: whether it stands out second; an underscore in a terminal.
    """

    text: str
    value: float | None = None
    superscript: str = ""
    bold: bool = False
    underline: bool = False


@dataclass(frozen=True)
class Table:
    """A table: title, heads of its columns, rows of cells, and notes below it.

    Args:
        title: what it shows.
        columns: heads, at least one.
        rows: as many cells each as there are columns; the first cell names the row.
        notes: sentences that a reader of the numbers must know.
        spans: heads above heads, each with the number of columns below it, from the first column on; a
            column's own head begins with that of its span. LaTeX sets them as a line of their own.
        rules: numbers of rows (from 0) that a new block begins with: a rule stands above, an empty row in
            Markdown.
        kept: places of the columns that stay where a screen has no room for all.

    Raises:
        CallError: a row has more or fewer cells than there are columns, or the spans do not cover them.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    spans: tuple[tuple[str, int], ...] = ()
    rules: tuple[int, ...] = ()
    kept: tuple[int, ...] = (0, 1)

    def __post_init__(self) -> None:
        """Refuse rows and spans that do not fit the head."""
        if self.spans and sum(width for _, width in self.spans) != len(self.columns):
            raise CallError(
                f"table {self.title!r}: its spans do not cover its {len(self.columns)} columns. "
                "Fix: let their widths add up to the number of columns."
            )
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise CallError(
                    f"table {self.title!r}: row {number} has {len(row)} cells, the head has "
                    f"{len(self.columns)}. Fix: give every row a cell a column."
                )

    def numeric(self) -> set[int]:
        """Places of the columns that hold numbers, so that they are set to the right."""
        return {place for row in self.rows for place, cell in enumerate(row) if cell.value is not None}


def check_format(format: str) -> None:
    """Refuse a format that does not exist.

    Raises:
        UnknownNameError: there is no such format; the message names the nearest.
    """
    if format not in FORMATS:
        raise UnknownNameError.of("format", format, FORMATS)


def tables_text(tables: Iterable[Table]) -> str:
    """Tables as a terminal shows them, without a line feed at the end; they follow each other.

    Example:
        >>> row = (Cell("CLIP_sum"), Cell("49.83", 0.4983, "a"))
        >>> print(tables_text([Table("Scores", ("method", "recall@5"), (row,))]))
        Scores
        method    recall@5
        CLIP_sum   49.83^a
    """
    return "\n\n".join(map(_table_text, tables))


def _table_text(table: Table) -> str:
    """Columns that the screen has room for; marks stand behind the numbers, whose digits stay in line."""
    right = table.numeric()
    columns = []
    for place, head in enumerate(table.columns):
        cells = [row[place] for row in table.rows]
        marks = [
            ("*" if cell.bold else "")
            + ("_" if cell.underline else "")
            + (f"^{cell.superscript}" if cell.superscript else "")
            for cell in cells
        ]
        widest = max(map(len, marks), default=0) if place in right else 0
        texts = (printable(cell.text) + mark.ljust(widest) for cell, mark in zip(cells, marks, strict=True))
        columns.append([head, *texts])
    head, *lines = fitted(list(zip(*columns, strict=True)), right=right, keep=table.kept).split("\n")
    rule = "-" * max(map(len, (head, *lines[: len(table.rows)])))
    for above in sorted(table.rules, reverse=True):
        lines.insert(above, rule)
    return "\n".join([printable(table.title), head, *lines, *map(printable, table.notes)])


def printable(text: str) -> str:
    """Text without line ends and control characters, which a name in a foreign file may hold."""
    return "".join(each if each.isprintable() else " " for each in text)
