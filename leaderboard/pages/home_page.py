"""The first page: what the task is, and all boards."""

from __future__ import annotations

from leaderboard import boards
from leaderboard.pages.site import Page, Site


def page(site: Site) -> Page:
    """The page.

    Args:
        site: of the server.
    """
    counts = site.server.store.count_published()
    listed = [(board, counts.get(board.id, 0)) for board in boards.boards()]
    return Page(
        "home.html",
        "Boards",
        "Boards of composed image retrieval: a reference image and a sentence that says what to change.",
        {"boards": listed},
    )
