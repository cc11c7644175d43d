"""A board's page: what is ranked, by what, on which protocol, how to enter; then its table."""

from __future__ import annotations

from collections.abc import Mapping

from leaderboard.boards import Board
from leaderboard.pages.site import Page, Site


def page(site: Site, board: Board, query: Mapping[str, str]) -> Page:
    """The page.

    Args:
        site: of the server.
        board: which one.
        query: of the address: `entry`, the entry that is marked.
    """
    view = site.server.tables.of(board).view
    values = {"board": board, "view": view, "marked": query.get("entry", "")}
    return Page("board.html", board.title, board.description, values)
