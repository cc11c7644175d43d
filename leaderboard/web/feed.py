"""The Atom feed (RFC 4287) of what came onto the boards lately.

Entries are named by UUIDs, which stay the same wherever the server is reached.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from leaderboard.boards import Board
from leaderboard.standings.views import entry_page

_ATOM = "http://www.w3.org/2005/Atom"
_LONGEST = 50
_NO_DATE = "1970-01-01T00:00:00+00:00"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that cannot stand in XML 1.0."""


def atom(
    tables: Sequence[tuple[Board, Sequence[Mapping[str, Any]]]],
    *,
    title: str,
    name: str,
    address: str,
    own: str,
    key: str,
) -> bytes:
    """The newest 50 entries, the newest first.

    Args:
        tables: boards and their rows in the API's form.
        title: the feed's.
        name: the server's name for itself.
        address: the server's address from outside, or empty where it is not known.
        own: the feed's own path and query.
        key: the server's public key: names made with it are its own.
    """
    rows = [(row, board) for board, found in tables for row in found if row["published_at"]]
    rows.sort(key=lambda pair: pair[0]["number"], reverse=True)
    ElementTree.register_namespace("", _ATOM)
    feed = ElementTree.Element(f"{{{_ATOM}}}feed")
    _text(feed, "id", _urn(key, own))
    _text(feed, "title", title)
    _text(feed, "updated", max((row["changed_at"] for row, _ in rows), default=_NO_DATE))
    _text(_child(feed, "author"), "name", name)
    _child(feed, "link", rel="self", type="application/atom+xml", href=address + own)
    for row, board in rows[:_LONGEST]:
        entry = _child(feed, "entry")
        _text(entry, "id", _urn(key, f"submission/{row['submission']}"))
        _text(entry, "title", f"{row['method'].get('name', 'unnamed')} on {board.title}")
        _text(entry, "published", row["published_at"])
        _text(entry, "updated", row["changed_at"])
        if row["submitter"]:
            _text(_child(entry, "author"), "name", row["submitter"])
        page = address + entry_page(board.id, row["submission"])
        _child(entry, "link", rel="alternate", type="text/html", href=page)
        _text(entry, "summary", _summary(row, board))
    written: bytes = ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return written


def _summary(row: Mapping[str, Any], board: Board) -> str:
    value = 100 * row["main"] if board.primary_unit == "percent" else row["main"]
    kind = "Baseline. " if row["baseline"] else ""
    return f"{kind}{board.primary} {value:.2f}; submission {row['submission']}, sha256 {row['sha256']}."


def _urn(key: str, name: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{key}{name}").urn


def _child(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.SubElement(parent, f"{{{_ATOM}}}{tag}", attributes)


def _text(parent: ElementTree.Element, tag: str, text: str) -> None:
    _child(parent, tag).text = _NOT_XML.sub("\ufffd", text)
