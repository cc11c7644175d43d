"""Tables of text: columns as wide as their widest cell, numbers to the right."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Rows of cells as lines of text, without blanks at their ends.

    Args:
        rows: cells, the same number in each row.
        right: places of the columns that are set to the right.

    Example:
        >>> print(aligned([["ID", "QUERIES"], ["a/b", "7"]], right=[1]))
        ID   QUERIES
        a/b        7
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def count(value: int | None) -> str:
    """A count with thousands apart, `-` where it is not known.

    Example:
        >>> count(22608), count(None)
        ('22,608', '-')
    """
    return "-" if value is None else f"{value:,}"
