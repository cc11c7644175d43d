"""The page about the boards, in a file of its own: each page of the leaderboard is in one.

It says what a rank file is, what is checked and what is kept.
"""

from __future__ import annotations

from importlib import resources

from leaderboard.pages.markdown import html_of
from leaderboard.pages.site import Page, Site


def page(site: Site) -> Page:
    """The page.

    Args:
        site: of the server.
    """
    return Page(
        "about.html",
        "About these boards",
        "What a rank file is, what happens to a file that is sent, what the numbers mean, and the limits.",
        {"text": html_of(about_text(site.server.settings.max_upload_bytes))},
        section="about",
    )


def about_text(max_upload_bytes: int) -> str:
    """The page's Markdown with this server's limit filled in.

    Args:
        max_upload_bytes: that the server takes of a file.
    """
    written = (resources.files("leaderboard.pages") / "about.md").read_text(encoding="utf-8")
    return written.replace("{limit}", f"{max_upload_bytes / 2**20:.0f} MB")
