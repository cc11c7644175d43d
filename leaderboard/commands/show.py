"""`cir leaderboard show` and `submissions`: the boards of a home as tables, without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cir_datasets.common.terminal import echo, echo_json, fitted
from leaderboard.commands import opened_server
from leaderboard.options import Home

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from leaderboard.boards import Board


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

        wanted = [boards.board(board_id) for board_id in board_ids or boards.ids()]
        tables = [(board, server.tables.refresh(board).view) for board in wanted]
    shown = [found for found in tables if board_ids or found[1]["entries"]]
    if as_json:
        echo_json([view for _, view in shown])
        return
    if not shown:
        echo("No board has an entry yet. Put one there: cir leaderboard add run.json", err=True)
        return
    echo("\n\n".join(board_text(board, view) for board, view in shown))


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


def board_text(board: Board, view: Mapping[str, Any]) -> str:
    """A board's title and its entries as an aligned table, fractions in per cent.

    Args:
        board: says which columns are shown.
        view: its table, from `leaderboard.standings.views.table_view`.
    """
    from leaderboard.standings import UNVERIFIED
    from leaderboard.standings.views import held_back_words, method_name

    rows, held_back = view["rows"], held_back_words(view)
    checked = view["protocol"]["gallery_images"]
    gallery = ("not checked" if checked is None else f"{checked:,}") + board.spec.gallery_note
    benchmark = f"{board.benchmark}#{board.version}"
    head = f"{board.title} ({benchmark}, gallery {gallery}, reference {board.spec.config.reference})"
    if not rows:
        return f"{head}\n{held_back or 'Nothing stands on this board yet.'}"
    columns = [["#", *(_place(row["rank"]) for row in rows)]]
    if sum(row["group"] is not None for row in rows) > 1:
        columns.append(["Group", *(_place(row["group"]) for row in rows)])
    # In a column of its own, before the name: no name can imitate it.
    columns += [["Kind", *map(_kind, rows)], ["Method", *map(method_name, rows)]]
    names, main = {len(columns) - 2, len(columns) - 1}, len(columns)
    unit, step = board.primary_unit, board.step_of(board.primary)
    columns.append([board.primary_label, *(shown_value(row["main"], unit, step) for row in rows)])
    intervals = [row["interval"] for row in rows]
    if any(intervals):
        columns.append(["95 %", *(_shown_interval(each, unit) for each in intervals)])
    for each in board.columns:
        values = (row["metrics"].get(each.metric) for row in rows)
        columns.append([each.label, *(shown_value(value, each.unit, board.step) for value in values)])
    table = [list(line) for line in zip(*columns, strict=True)]
    lines = fitted(table, right={*range(len(columns))} - names, keep=range(main + 1)).split("\n")
    rule = "-" * max(map(len, lines[: len(table)]))
    body: list[str] = []
    block = "current"
    for row, line in zip(rows, lines[1:], strict=False):
        body += [view["blocks"][row["block"]]] if row["block"] != block else []
        body.append(line)
        block = row["block"]
    note = lines[len(table) :]
    note += [_ORACLE] if any(row["is_oracle"] for row in rows) else []
    note += [UNVERIFIED] if any(row["reference_evidence"]["unverified"] for row in rows) else []
    note += [held_back] if held_back else []
    return "\n".join([head, lines[0], rule, *body, *note])


def _place(number: int | None) -> str:
    return "-" if number is None else str(number)


def _kind(row: Mapping[str, Any]) -> str:
    kind = "oracle" if row["is_oracle"] else "baseline" if row["baseline"] else ""
    unverified = "reference unverified" if row["reference_evidence"]["unverified"] else ""
    return ", ".join(filter(None, [kind, unverified]))


def _shown_interval(interval: Sequence[float] | None, unit: str) -> str:
    return "-" if interval is None else f"[{', '.join(shown_value(end, unit) for end in interval)}]"


def shown_value(value: float | None, unit: str, step: float = 0.01) -> str:
    """A value as tables print it, fractions in per cent, with the decimals of its step."""
    if value is None:
        return "-"
    digits = min(2, len(f"{step:g}".partition(".")[2]))
    return f"{100 * value if unit == 'percent' else value:.{digits}f}"
