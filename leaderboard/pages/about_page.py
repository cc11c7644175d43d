"""The about page, in a file of its own: each page of the leaderboard is in one.

It says what a rank file is, what is checked and what is kept.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import gradio as gr

from leaderboard.pages.layout import page_foot, page_head
from leaderboard.server import Server


def build(demo: Any, server: Server) -> None:
    """Add the page to the pages' Blocks."""
    with demo.route("About", "/about"):
        page_head("About")
        gr.Markdown(about_text(server.settings.max_upload_bytes), elem_classes="about")
        page_foot()


def about_text(max_upload_bytes: int) -> str:
    """The page's Markdown with this server's limit filled in."""
    written = (resources.files("leaderboard.pages") / "about.md").read_text(encoding="utf-8")
    return written.replace("{limit}", f"{max_upload_bytes / 2**20:.0f} MB")
