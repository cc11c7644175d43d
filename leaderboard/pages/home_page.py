"""The first page: the task in one query, and one table of all boards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.pages.labels import metric_value
from leaderboard.pages.pictures import task_example
from leaderboard.pages.published_rows import PublishedLine, best_for
from leaderboard.pages.published_tables import column_of
from leaderboard.pages.site import Page, Site
from leaderboard.standings.tables import KeptTable
from leaderboard.standings.views import compared_rows, method_name, state_words


@dataclass(frozen=True)
class Leader:
    """What stands first on a board: `also` counts the others of its group, or of its rank."""

    submission: str
    name: str
    value: str
    also: int
    is_baseline: bool


@dataclass(frozen=True)
class BoardLine:
    """A board on the first page.

    Args:
        board: the board.
        metric: what ranks.
        over: how many queries over how many images, or empty.
        leader: what leads it, or None where it has no entry.
        entries: how many it has.
        last: day of the newest entry, or empty.
        is_open: whether files sent now are judged.
        until: the last day of the open phase, or empty.
        state: `open`, or what is missing, in a few words.
        best: the best published number, where no entry stands.
    """

    board: Board
    metric: str
    over: str
    leader: Leader | None
    entries: int
    last: str
    is_open: bool
    until: str
    state: str
    best: PublishedLine | None


def page(site: Site, _query: Mapping[str, str]) -> Page:
    """The page."""
    lines = [_line_of(board, site.server.tables.of(board)) for board in boards.boards()]
    example = task_example()
    return Page(
        "home.html",
        "Boards of composed image retrieval",
        "Which methods find the picture that a reference picture and a sentence ask for: boards with rank "
        "groups, intervals and published results.",
        {
            "example": example,
            "open_lines": sorted((line for line in lines if line.is_open), key=lambda line: not line.entries),
            "closed_lines": [line for line in lines if not line.is_open],
        },
        image=example["target"]["path"],
    )


def _line_of(board: Board, table: KeptTable) -> BoardLine:
    """A board's line, made once a table."""
    found: BoardLine | None = table.derived.get("line")
    if found is None:
        found = table.derived["line"] = _line(board, table.view)
    return found


def _line(board: Board, view: Mapping[str, Any]) -> BoardLine:
    state, phase = state_words(view), board.phase(datetime.now(UTC))
    return BoardLine(
        board=board,
        metric=column_of(board.primary).head if len(board.primary_terms) > 1 else board.primary_label,
        over=_over(board),
        leader=_leader(board, view["rows"]),
        entries=view["entries"],
        last=max((row["published_at"] or "" for row in view["rows"]), default="")[:10],
        is_open=state == "open",
        until="" if phase is None else f"{phase.closes:%Y-%m-%d}",
        state=state,
        best=None if view["rows"] else best_for(board),
    )


def _leader(board: Board, rows: Sequence[Mapping[str, Any]]) -> Leader | None:
    """The first method, else the first baseline; None where nothing is compared."""
    compared = compared_rows(rows)
    entered = [row for row in compared if not row["baseline"]] or compared
    if not entered:
        return None
    first = entered[0]
    key = "main" if first["group"] is None else "group"
    return Leader(
        first["submission"],
        method_name(first),
        metric_value(board, board.primary, first["main"]),
        sum(row[key] == first[key] for row in entered) - 1,
        first["baseline"],
    )


def _over(board: Board) -> str:
    """How many queries are ranked, and among how many images, where that is known."""
    unit = "sessions" if board.spec.kind == "multi_turn" else "queries"
    found = [f"{board.queries:,} {unit}"] if board.queries is not None else []
    found += [f"{board.gallery:,} images{board.spec.gallery_note}"] if board.gallery is not None else []
    return " over ".join(found)
