"""A board as plain text: what `cir leaderboard show` prints."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.boards import Board
from leaderboard.standings import Entry, checked_gallery

_NOT_RANKED = "-: scored on other data, or by another version, than this board has now; not comparable."


def board_text(board: Board, entries: Sequence[Entry]) -> str:
    """A board's title and its entries as an aligned table, fractions in per cent.

    Args:
        board: says which columns are shown.
        entries: from `standings`, best first.
    """
    checked = checked_gallery(board, entries)
    gallery = "not checked" if checked is None else f"{checked:,}"
    benchmark = f"{board.benchmark}#{board.spec.card.version}"
    head = f"{board.title} ({benchmark}, gallery {gallery}, reference {board.spec.config.reference})"
    if not entries:
        return f"{head}\nNothing stands on this board yet."
    labels = ["#", "Kind", "Method", board.primary_label, *(column.label for column in board.columns)]
    rows = [labels, *(_cells(board, entry) for entry in entries)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(labels))]
    lines = [
        "  ".join(
            cell.ljust(width) if place in (1, 2) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    rule = "-" * max(map(len, lines))
    note = [_NOT_RANKED] if any(entry.rank is None for entry in entries) else []
    return "\n".join([head, lines[0], rule, *lines[1:], *note])


def _cells(board: Board, entry: Entry) -> list[str]:
    # In a column of its own, before the name: no name can imitate it.
    kind = "baseline" if entry.submission.baseline else ""
    values = [_shown(entry.value, board.primary_unit)]
    values += [_shown(entry.metrics.get(column.metric), column.unit) for column in board.columns]
    return ["-" if entry.rank is None else str(entry.rank), kind, entry.name, *values]


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.2f}" if unit == "percent" else f"{value:.2f}"
