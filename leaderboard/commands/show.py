"""`cir leaderboard show` and `submissions`: the boards of a home as tables, without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cir_datasets.common.terminal import echo, echo_json, fitted
from leaderboard.commands import opened_server
from leaderboard.options import Home

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from leaderboard.boards import Board
    from leaderboard.standings import Entry


def show(
    board_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[BOARD]...", help="Board ids; default: those with entries.")
    ] = None,
    home: Home = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: with fractions.")] = False,
) -> None:
    """Print the boards of a home as tables, without a server.

    \b
    Example:
        cir leaderboard show shapes/val
    """
    with opened_server(home) as server:
        from leaderboard import boards
        from leaderboard.standings.views import groups_of, held_back_words, intervals_of

        wanted = [boards.board(board_id) for board_id in board_ids or boards.ids()]
        tables = [(board, server.tables.refresh(board).view, server.entries(board)) for board in wanted]
    shown = [found for found in tables if board_ids or found[1]["entries"]]
    if as_json:
        echo_json([view for _, view, _ in shown])
        return
    if not shown:
        echo("No board has an entry yet. Put one there: cir leaderboard add run.json", err=True)
        return
    echo(
        "\n\n".join(
            board_text(board, entries, groups_of(view), held_back_words(view), intervals_of(view))
            for board, view, entries in shown
        )
    )


def submissions(
    board: Annotated[str, typer.Argument(help="Board id.")],
    home: Home = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: with fractions.")] = False,
) -> None:
    """List all submissions to a board with their scores, refused ones too, for its organisers.

    Also before results are shown; the owner is whoever holds the token of that name.

    \b
    Example:
        cir leaderboard submissions shapes/val
    """
    with opened_server(home) as server:
        from leaderboard import boards
        from leaderboard.standings.views import submission_view

        found = boards.board(board)
        sent = server.store.of_board(found.id)
    if as_json:
        views = [{**submission_view(one, organiser=True), "owner": one.owner} for one in sent]
        echo_json(views)
        return
    lines = [["submission", "received", "owner", "method", "state", found.primary_label]]
    for one in sent:
        value = None if one.scores is None else found.primary_value(one.scores["metrics"])
        name = str((one.method or {}).get("name", ""))
        when = f"{one.received_at:%Y-%m-%d %H:%M}"
        lines.append([one.id, when, one.owner, name, one.state, shown_value(value, found.primary_unit)])
    echo(fitted(lines, right={5}, keep=(0, 3, 5)))


_ORACLE = "oracle: knows what no user's query holds; it has no rank."


def board_text(
    board: Board,
    entries: Sequence[Entry],
    groups: Mapping[str, int] | None = None,
    held_back: str = "",
    intervals: Mapping[str, Sequence[float]] | None = None,
) -> str:
    """A board's title and its entries as an aligned table, fractions in per cent.

    Args:
        board: says which columns are shown.
        entries: from `standings`, best first.
        groups: the rank group by submission; shown where more than one has a group.
        held_back: a sentence on entries that are not shown yet.
        intervals: low and high end of the main value's interval by submission; shown where one has any.
    """
    from leaderboard.standings import UNVERIFIED, block_words, checked_gallery

    checked = checked_gallery(board, entries)
    gallery = ("not checked" if checked is None else f"{checked:,}") + board.spec.gallery_note
    benchmark = f"{board.benchmark}#{board.version}"
    head = f"{board.title} ({benchmark}, gallery {gallery}, reference {board.spec.config.reference})"
    if not entries:
        return f"{head}\n{held_back or 'Nothing stands on this board yet.'}"
    labels = ["#", "Kind", "Method", board.primary_label, *(column.label for column in board.columns)]
    rows = [labels, *(_cells(board, entry) for entry in entries)]
    if intervals:
        place = labels.index(board.primary_label, 3) + 1
        ends = [_shown_interval(intervals.get(entry.submission.id), board.primary_unit) for entry in entries]
        rows = [[*row[:place], end, *row[place:]] for row, end in zip(rows, ["95 %", *ends], strict=True)]
    if groups and len(groups) > 1:
        found = [str(groups.get(entry.submission.id, "-")) for entry in entries]
        rows = [[row[0], group, *row[1:]] for row, group in zip(rows, ["Group", *found], strict=True)]
    heads = rows[0]
    names = {heads.index("Kind"), heads.index("Method")}
    method = heads.index("Method")
    keep = (*range(method + 1), heads.index(board.primary_label, method + 1))
    lines = fitted(rows, right={*range(len(heads))} - names, keep=keep).split("\n")
    rule = "-" * max(map(len, lines[: len(rows)]))
    body: list[str] = []
    block = "current"
    for entry, line in zip(entries, lines[1:], strict=False):
        body += [block_words(board, entry.block)] if entry.block != block else []
        body.append(line)
        block = entry.block
    note = lines[len(rows) :]
    note += [_ORACLE] if any(entry.oracle for entry in entries) else []
    note += [UNVERIFIED] if any(entry.reference.unverified for entry in entries) else []
    note += [held_back] if held_back else []
    return "\n".join([head, lines[0], rule, *body, *note])


def _cells(board: Board, entry: Entry) -> list[str]:
    # In a column of its own, before the name: no name can imitate it.
    kind = "oracle" if entry.oracle else "baseline" if entry.submission.baseline else ""
    kind = ", ".join(filter(None, [kind, "reference unverified" if entry.reference.unverified else ""]))
    values = [shown_value(entry.value, board.primary_unit, board.step_of(board.primary))]
    values += [shown_value(entry.metrics.get(each.metric), each.unit, board.step) for each in board.columns]
    return ["-" if entry.rank is None else str(entry.rank), kind, entry.name, *values]


def _shown_interval(interval: Sequence[float] | None, unit: str) -> str:
    return "-" if interval is None else f"[{', '.join(shown_value(end, unit) for end in interval)}]"


def shown_value(value: float | None, unit: str, step: float = 0.01) -> str:
    """A value as tables print it, fractions in per cent, with the decimals of its step."""
    if value is None:
        return "-"
    digits = min(2, len(f"{step:g}".partition(".")[2]))
    return f"{100 * value if unit == 'percent' else value:.{digits}f}"
