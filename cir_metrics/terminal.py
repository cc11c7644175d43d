"""The one place where the suite writes to a terminal: nothing that a terminal obeys gets through.

Names, ids and answers come from files and servers of others. An escape sequence in one of them could recolour
or rewrite what stands on the screen, and a control of text direction could show a name backwards.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from cir_metrics.errors import without_passwords

_OBEYED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls but tab and line feed, and but the line ends of Windows
    "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"  # directions of text, separators of lines
    "\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e007f]"  # halves of characters, annotations, tags
    "|\r(?!\n)"
)
_LAST_OF_ONE_BYTE = 0x1F


def visible(text: str) -> str:
    """A text with what a terminal would obey written out, as `\\x1b` or `\\u202e`; JSON stays the same JSON.

    Line feeds and tabs stay.

    Example:
        >>> print(visible("red: \\x1b[31m, backwards: \\u202e"))
        red: \\x1b[31m, backwards: \\u202e
    """
    return _OBEYED.sub(_written_out, text)


def echo(message: object = "", *, err: bool = False) -> None:
    """Write a line: data to stdout, words to stderr; words lose the passwords of addresses.

    Args:
        message: shown as text.
        err: whether these are words.
    """
    import typer

    text = visible(str(message))
    typer.echo(without_passwords(text) if err else text, err=err)


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


def _written_out(found: re.Match[str]) -> str:
    number = ord(found.group())
    if number <= _LAST_OF_ONE_BYTE:  # JSON writes these out itself, so that none is left in it
        return f"\\x{number:02x}"
    # The others as JSON writes them: two halves beyond the first 65,536.
    halves = found.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{halves[start : start + 4]}" for start in range(0, len(halves), 4))
