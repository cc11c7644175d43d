"""The tabs of a board's page, and what each shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from leaderboard.boards import Board
from leaderboard.pages import query_page
from leaderboard.pages.board import about, groups
from leaderboard.pages.board.head import in_short
from leaderboard.pages.board.trend import trend
from leaderboard.pages.plots import MOST_SERIES
from leaderboard.pages.queries import why_hidden
from leaderboard.pages.site import UNREAD, Page, Site
from leaderboard.standings.views import compared_rows, method_name

TABLE, ASPECTS, TURNS, TREND, QUERIES, ABOUT = "", "aspects", "turns", "trend", "queries", "about"
_FIRST_SHOWN = 5
"""Methods that are drawn where the address names none."""
_OFFERED = 60
"""Methods that a reader may choose from, the first of the table."""


def tabs_of(board: Board) -> dict[str, str]:
    """The tabs that a board has on every server, by name in the address; the table's name is empty.

    Args:
        board: the board.

    Example:
        >>> from leaderboard import boards
        >>> tabs_of(boards.board("shapes/multiturn_val"))
        {'': 'Table', 'turns': 'Turns', 'trend': 'Trend', 'about': 'About'}
    """
    found = {TABLE: "Table"}
    if board.takes_bundles:
        found[ASPECTS] = "Members"
    elif not board.sealed and board.spec.kind == "single_turn" and not board.dialogue:
        found |= {ASPECTS: "Aspects"} if board.spec.card.report.by_aspect else {}
    if not (board.sealed or board.takes_bundles) and (board.spec.kind == "multi_turn" or board.dialogue):
        found[TURNS] = "Turns"
    if board.primary_unit == "percent":
        found[TREND] = "Trend"
    return {**found, ABOUT: "About"}


def tabs_here(site: Site, board: Board) -> dict[str, str]:
    """The tabs of a board on this server: its queries too, where their data is here and they may be shown.

    Args:
        site: of the server.
        board: the board.
    """
    found = tabs_of(board)
    if why_hidden(site, board):
        return found
    last = found.pop(ABOUT)
    return {**found, QUERIES: "Queries", ABOUT: last}


def asked_tab(query: Mapping[str, str], tabs: Mapping[str, str]) -> str:
    """The tab that an address names, by its own name or by what the page calls it.

    Args:
        query: of the address.
        tabs: the board's, by name what the page calls them.

    Example:
        >>> asked_tab({"tab": "members"}, {"": "Table", "aspects": "Members"})
        'aspects'
    """
    said = query.get("tab", "")
    titled = (name for name, title in tabs.items() if title.casefold() == said.casefold())
    return said if said in tabs else next(titled, said)


def page(site: Site, board: Board, query: Mapping[str, str]) -> Page | None:
    """The page of a tab, or None where the address names none that the board has.

    Args:
        site: of the server.
        board: which board.
        query: of the address: `tab`, `e` (ids of entries by commas) and `metric`.
    """
    tabs = tabs_here(site, board)
    tab = asked_tab(query, tabs)
    if tab == TABLE or tab not in tabs:
        return None
    if tab == ABOUT:
        made = about.page(site, board, tabs)
    elif tab == QUERIES:
        made = query_page.tab(site, board, query, tabs)
    else:
        words, values = _values(site, board, query, tab)
        said = f"{words} of {board.title}: {values['about']}"
        made = Page("board/tab.html", _title(board, words, values), said, values)
    view = site.server.tables.of(board).view
    return replace(made, values={**made.values, **in_short(board, view)})


def _title(board: Board, words: str, values: Mapping[str, Any]) -> str:
    """The board's, with the tab, the metric where there are several, and methods that the address names."""
    said = [f"{board.title}: {words.lower()}"]
    said += [label for name, label in values["metrics"][1:] if name == values["metric"]]
    drawn = [each["name"] for each in values["offered"] if each["chosen"]] if values["asked"] else []
    named = " and ".join([*drawn[:2], *([f"{len(drawn) - 2} more"] if drawn[2:] else [])])
    return ", ".join(filter(None, (*said, named)))


def _values(site: Site, board: Board, query: Mapping[str, str], tab: str) -> tuple[str, dict[str, Any]]:
    """The tab's words, and what its template asks for."""
    tabs = tabs_here(site, board)
    rows = site.server.tables.of(board).view["rows"]
    chosen, remarks = _chosen(rows, query.get("e", ""))
    if tab == TREND:
        shown = trend(board, rows)
    elif board.takes_bundles:
        shown = groups.members_of(board, chosen)
    else:
        shown = _by_group(site, board, chosen, query, tab)
    names = {row["submission"] for row in chosen}
    offered = [
        {"id": row["submission"], "name": method_name(row), "chosen": row["submission"] in names}
        for row in ([] if tab == TREND else rows[:_OFFERED])
    ]
    values = {
        "board": board,
        "path": f"b/{quote(board.id)}",
        "tab": tab,
        "tabs": tabs,
        "asked": query.get("e", ""),
        "remarks": [*remarks, *shown.pop("remarks", [])],
        "offered": offered,
        "most": MOST_SERIES,
        "metric": "",
        "metrics": [],
        **shown,
    }
    return tabs[tab], values


def _chosen(rows: Sequence[Mapping[str, Any]], asked: str) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The rows that are drawn, and what is said of the others that the address names."""
    ids = list(dict.fromkeys(filter(None, map(str.strip, asked.split(",")))))
    by_id = {row["submission"]: row for row in rows}
    found = [by_id[each] for each in ids if each in by_id]
    remarks = [
        f"{each[:40]} is not an entry of this board and is left out." for each in ids if each not in by_id
    ]
    if len(found) > MOST_SERIES:
        remarks.append(f"The first {MOST_SERIES} of {len(found)} methods are shown.")
    if not found:
        found = compared_rows(rows)[:_FIRST_SHOWN]
    return found[:MOST_SERIES], remarks


def _by_group(
    site: Site, board: Board, chosen: Sequence[Mapping[str, Any]], query: Mapping[str, str], tab: str
) -> dict[str, Any]:
    """Aspects or turns of the chosen entries, as far as their numbers are there."""
    found, unread = [], []
    for row in chosen:
        submission = site.server.store.submission(row["submission"])
        numbers = None if submission is None else site.server.numbers.of(submission)
        if numbers is not None:
            found.append((method_name(row), numbers[0]))
        else:
            unread.append(method_name(row))
    asked = query.get("metric", "")
    shown = groups.turns(board, found) if tab == TURNS else groups.aspects(board, found, asked)
    remarks = shown.setdefault("remarks", [])
    if unread:
        remarks.append(f"{', '.join(unread)}: {UNREAD}")
    return shown
