"""The page about the boards, in a file of its own: each page of the leaderboard is in one.

It says what a rank file is, what is checked and what is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

from leaderboard.pages.markdown import html_of
from leaderboard.pages.site import Page, Site


def page(_site: Site, _query: Mapping[str, str]) -> Page:
    """The page."""
    return Page(
        "about.html",
        "About these boards",
        "What a rank file is, what happens to a file that is sent, and what the numbers mean.",
        {"text": html_of((resources.files("leaderboard.pages") / "about.md").read_text("utf-8"))},
        section="about",
    )
