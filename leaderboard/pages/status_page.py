"""The status page: for people, what `/health` says to programs, and what each board lacks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.errors import SubmissionStoreError
from leaderboard.pages.published_rows import as_sentence
from leaderboard.pages.site import Page, Site, missing_page
from leaderboard.standings.views import state_words

log = logging.getLogger("leaderboard.pages.status")

_GIB = 2**30
_LOW_BYTES = _GIB
_DESCRIPTION = "Whether files are taken and judged now: queue, workers, versions, and what each board lacks."


@dataclass(frozen=True)
class BoardState:
    """How a board is.

    Args:
        board: the board.
        state: `open`, or in a few words why files sent to it now are not judged.
        lacks: what it lacks in a sentence or two, or empty.
        entries: how many stand on it.
    """

    board: Board
    state: str
    lacks: str
    entries: int


def page(site: Site, _query: Mapping[str, str]) -> Page:
    """The page."""
    now = datetime.now(UTC)
    try:
        health, listed = site.server.health(), board_states(site, now)
    except (SQLAlchemyError, SubmissionStoreError, OSError):
        log.exception("the status cannot be read")
        words = "The server lives, but its database or its disk does not answer. Try again later."
        return missing_page("Not available", words, status=503)
    values = {"problems": problems(health), "lines": lines(health, now), "now": now, "listed": listed}
    return Page("status.html", "Status", _DESCRIPTION, values, section="status")


def board_states(site: Site, now: datetime) -> list[BoardState]:
    """How every board is: those that are not open first.

    Args:
        site: of the server.
        now: the moment, UTC.
    """
    counts = site.server.store.count_published()
    found = []
    for board in boards.boards():
        view = {
            "closed": board.closed(now),
            "paused": site.server.store.paused(board.id),
            "unavailable": site.server.tables.problem(board),
        }
        state = state_words(view).partition(":")[0]
        lacks = " ".join(as_sentence(words) for words in view.values() if words)
        found.append(BoardState(board, state, lacks, counts.get(board.id, 0)))
    return sorted(found, key=lambda one: one.state == "open")


def problems(health: dict[str, Any]) -> list[str]:
    """What is wrong, a sentence each; empty where all is well.

    Args:
        health: from `Server.health`.
    """
    found = []
    if not any(one["alive"] for one in health["workers"]):
        found.append("No worker is running. Files are kept, and judged when one starts.")
    if health["free_bytes"] < _LOW_BYTES:
        found.append("The disk is nearly full: uploads may be refused.")
    if health["lost_files"]:
        found.append("Rank files are missing or damaged: cir leaderboard verify  names them.")
    found.extend(
        f"{one['name']} is not prepared: {one['message']}"
        for one in health["preparing"]
        if one["state"] == "failed"
    )
    found.extend(
        f"The board file {name} is wrong: the server's log says why. The other boards go on."
        for name in health["wrong_boards"]
    )
    return found


def lines(health: dict[str, Any], now: datetime) -> list[tuple[str, list[str]]]:
    """What the page lists: by name one value or several.

    Args:
        health: from `Server.health`.
        now: the moment of it, UTC.
    """
    since, scored = health["oldest_waiting"], health["last_scored"]
    waits = f"{health['waiting']:,}" + ("" if since is None else f", the oldest for {_ago(now - since)}")
    workers = [
        f"{'' if one['alive'] else 'gone: '}version {one['version']}, "
        f"last sign of life {_ago(now - one['seen_at'])} ago"
        for one in health["workers"]
    ]
    return [
        ("Submissions that wait", [waits]),
        ("Last file scored", ["none yet" if scored is None else f"{_ago(now - scored)} ago"]),
        ("Workers", workers or ["none"]),
        ("Free space", [f"{health['free_bytes'] / _GIB:,.1f} GiB"]),
        ("Largest file", [f"{health['max_upload_bytes'] / 2**20:.0f} MB"]),
        ("Boards", [str(health["boards"])]),
        ("Version", [f"cir-benchmarks {health['version']}"]),
    ]


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
