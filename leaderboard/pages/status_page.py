"""The status page: for people, what `/health` says to programs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from leaderboard.pages.layout import html_block, page_foot, page_head
from leaderboard.pages.markup import element, joined, text
from leaderboard.queue.jobs import LEASE_SECONDS
from leaderboard.server import Server

_GIB = 2**30
_LOW_BYTES = _GIB


def build(demo: Any, server: Server) -> None:
    """Add the page to the pages' Blocks."""
    with demo.route("Status", "/status"):
        page_head("")
        shown = html_block(element("p", "Asking the server…", "loading"), elem_id="status")
        page_foot()

        def look() -> str:
            try:
                return status_html(server.health(), datetime.now(UTC))
            except (SQLAlchemyError, OSError):
                words = "The server lives, but its database or its disk does not answer. Try again later."
                return element("div", element("h3", "Not available") + element("p", words), "outcome bad")

        demo.load(look, outputs=shown, show_progress="hidden", api_visibility="private")


def status_html(health: dict[str, Any], now: datetime) -> str:
    """The page's content.

    Args:
        health: from `Server.health`.
        now: the moment of it, UTC.
    """
    alive = [one for one in health["workers"] if now - one["seen_at"] < timedelta(seconds=LEASE_SECONDS)]
    problems = []
    if not alive:
        problems.append("No worker shows itself: what is sent is kept, and judged when one runs again.")
    if health["free_bytes"] < _LOW_BYTES:
        problems.append("The disk is nearly full: uploads may be refused.")
    problems.extend(
        f"The board file {text(name)} is wrong: the server's log says why. The other boards go on."
        for name in health["wrong_boards"]
    )
    said = joined(element("p", words, "notice") for words in problems) or element(
        "p", "All is well: files are taken and judged.", "notice good"
    )
    since = health["oldest_waiting"]
    waits = f"{health['waiting']:,}" + ("" if since is None else f", the oldest for {_ago(now - since)}")
    workers = joined(
        element("div", f"version {text(one['version'])}, last sign of life {_ago(now - one['seen_at'])} ago")
        for one in health["workers"]
    )
    scored = health["last_scored"]
    lines = (
        ("Submissions that wait", waits),
        ("Last file scored", "none yet" if scored is None else f"{_ago(now - scored)} ago"),
        ("Workers", workers or "none"),
        ("Free space", f"{health['free_bytes'] / _GIB:,.1f} GiB"),
        ("Largest file", f"{health['max_upload_bytes'] / 2**20:.0f} MB"),
        ("Boards", str(health["boards"])),
        ("Version", f"cir-benchmarks {text(health['version'])}"),
        ("As of", f"{now:%Y-%m-%d %H:%M:%S} UTC · {element('a', 'as JSON', href='./health')}"),
    )
    listed = joined(element("dt", name) + element("dd", value) for name, value in lines)
    title = element("div", element("h1", "Status"), "title")
    return element("div", title + said + element("dl", listed), "status")


def _ago(passed: timedelta) -> str:
    """A span of time in its largest whole unit.

    Example:
        >>> _ago(timedelta(seconds=7)), _ago(timedelta(minutes=119)), _ago(timedelta(days=3))
        ('7 seconds', '119 minutes', '3 days')
    """
    seconds = max(0, int(passed.total_seconds()))
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} {'second' if seconds == 1 else 'seconds'}"
