"""The Atom feed (RFC 4287) of what came onto the boards lately, in a file of its own: few ask for it.

Entries are named by UUIDs, which stay the same wherever the server is reached.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from leaderboard.boards import Board
from leaderboard.pages.site import environment
from leaderboard.standings.views import entry_page

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that cannot stand in XML 1.0."""
_NO_DATE = "1970-01-01T00:00:00+00:00"


def atom(tables: Sequence[tuple[Board, Sequence[Mapping[str, Any]]]], *, key: str, **words: str) -> bytes:
    """The newest 50 entries, the newest first.

    Args:
        tables: boards and their rows in the API's form.
        key: the server's public key: names made with it are its own.
        words: of the feed its `title` and its `own` path and query; the server's `name` for itself, and its
            `address` from outside, or an empty one.
    """
    rows = [(row, board) for board, found in tables for row in found if row["published_at"]]
    rows.sort(key=lambda pair: pair[0]["number"], reverse=True)

    def urn(name: str) -> str:
        return uuid.uuid5(uuid.NAMESPACE_URL, f"{key}{name}").urn

    template = environment().get_template("feed.html")
    updated = max((row["changed_at"] for row, _ in rows), default=_NO_DATE)
    text = template.render(rows=rows, updated=updated, urn=urn, entry_page=entry_page, **words)
    return _NOT_XML.sub("\ufffd", text).encode()
