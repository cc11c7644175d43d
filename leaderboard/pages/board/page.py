"""A board's page: its protocol in one line and its table; then what is asked and how to enter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.errors import UploadRefusedError
from leaderboard.identity import NOBODY
from leaderboard.pages.board import head
from leaderboard.pages.board.choices import choice_words, read_choices
from leaderboard.pages.board.example import example_of
from leaderboard.pages.board.rows import Line, kept_lines, published_lines, shown
from leaderboard.pages.board.steps import meanwhile, steps
from leaderboard.pages.board.table import table_values
from leaderboard.pages.board.tabs import asked_tab, tabs_here
from leaderboard.pages.board.tabs import page as tab_page
from leaderboard.pages.site import FRAMED_POLICY, Page, Site, shortened
from leaderboard.server.callers import readable
from leaderboard.standings.views import held_back_words

_LONGEST_TAB = 40
"""Characters of an unknown tab's name that are shown."""


@dataclass(frozen=True)
class Notice:
    """A notice above the page's content; `organiser` is for who runs the server."""

    said: str
    organiser: str = ""


def page(site: Site, query: Mapping[str, str], board_id: str) -> Page:
    """The page: of the tab that the address names, or the table.

    Args:
        site: of the server.
        query: of the address; `leaderboard.pages.board.choices.Choices` says what it may choose.
        board_id: of which board.
    """
    board = boards.board(board_id)
    return tab_page(site, board, query) or _table_page(site, board, query)


def _table_page(site: Site, board: Board, query: Mapping[str, str]) -> Page:
    table = site.server.tables.of(board)
    view = table.view
    choices, remarks = read_choices(board, query)
    lines = kept_lines(board, table) + published_lines(board)
    found = shown(board, lines, choices, remarks)
    embed = query.get("embed") == "1"
    tabs = tabs_here(site, board)
    values = {
        "board": board,
        "path": f"b/{quote(board.id)}",
        "tab": "",
        "tabs": tabs,
        "embed": embed,
        "address": site.server.settings.url or "URL",
        "choices": found.choices,
        "total": len(lines),
        "example": example_of(board),
        "head": _head(site, board, view, lines),
        **head.in_short(board, view),
        "table": table_values(board, view, lines, found),
        "notices": [*_unknown_tab(asked_tab(query, tabs), tabs), *_notices(view)],
        "missing_entry": _missing_entry(view, choices.entry),
        "missing_known": _is_known(site, choices.entry),
        "empty": held_back_words(view) or _empty_words(board),
    }
    title = ", ".join([board.title, *choice_words(board, found.choices)])
    if embed:
        return Page("board/embed.html", f"{title}, to embed", board.description, values, policy=FRAMED_POLICY)
    return Page("board/page.html", title, board.description, values)


def _head(site: Site, board: Board, view: Mapping[str, Any], lines: Sequence[Line]) -> dict[str, Any]:
    baselines = [line.name for line in lines if line.kind == "baseline"]
    return {
        "badges": head.badges(board, view["unavailable"]),
        "task": head.task(board),
        "user": head.dialogue_user(board),
        "steps": steps(board, baselines, with_tokens=site.server.settings.accounts == "tokens"),
        "word": head.file_word(board),
        "lacks": meanwhile(board, view),
    }


def _unknown_tab(tab: str, tabs: Mapping[str, str]) -> list[Notice]:
    """What is said where an address names a tab that the board has not here."""
    if tab in tabs:
        return []
    known = ", ".join(title.lower() for name, title in tabs.items() if name)
    return [
        Notice(
            f"This board has no tab {shortened(tab, _LONGEST_TAB)} here; its table is shown. Tabs: {known}."
        )
    ]


def _notices(view: Mapping[str, Any]) -> list[Notice]:
    """Why the board takes nothing now, and what it holds back."""
    found = []
    if problem := view["paused"] or view["closed"]:
        found.append(Notice(f"This board takes no submissions now: {problem}"))
    elif view["unavailable"]:
        # Its first sentence says what is missing; what follows is what the organiser does about it.
        why, _, organiser = view["unavailable"].partition(". ")
        found.append(Notice(f"This board takes no submissions now: {why.rstrip('.')}.", organiser))
    held = held_back_words(view)
    return [*found, Notice(held)] if held and view["rows"] else found


def _empty_words(board: Board) -> str:
    better = "lowest" if board.primary_direction == "lower" else "highest"
    return (
        "This board has no entry yet. Published entries appear here, "
        f"the {better} {board.primary_label} first, with rank groups and intervals."
    )


def _is_known(site: Site, submission_id: str) -> bool:
    """Whether everybody may read of a submission, on the board or not."""
    try:
        return bool(submission_id) and readable(site.server, NOBODY, submission_id) is not None
    except UploadRefusedError:
        return False


def _missing_entry(view: Mapping[str, Any], entry: str) -> str:
    """What is said of an entry that the address names and the board has not."""
    if not entry or any(row["submission"] == entry for row in view["rows"]):
        return ""
    return f"The entry {entry} is not on this board."
