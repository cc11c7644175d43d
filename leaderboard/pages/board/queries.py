"""The tab of a board's page that lists its queries: searched by text or id, by aspect, 50 a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cir_datasets.browse.queries import caption_of
from leaderboard.boards import Board
from leaderboard.pages.board.table import linked_pages
from leaderboard.pages.pictures import hosted_path, picture_path
from leaderboard.pages.queries import queries_of
from leaderboard.pages.query_filter import LONGEST
from leaderboard.pages.site import Page, Site

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.records import Row

PAGE_QUERIES = 50
"""Queries or sessions of a page."""


def page(site: Site, board: Board, query: Mapping[str, str], tabs: Mapping[str, str]) -> Page:
    """The page of the tab.

    Args:
        site: of the server.
        board: one for which `leaderboard.pages.queries.why_hidden` says nothing.
        query: of the address: `q` (text or id), `aspect`, `member` (of a suite) and `page`.
        tabs: the board's, from `leaderboard.pages.board.tabs.tabs_here`.
    """
    wanted_member, wanted_aspect = query.get("member", ""), query.get("aspect", "")
    member = wanted_member if wanted_member in board.benchmarks else board.benchmarks[0]
    queries = queries_of(member)
    aspect = wanted_aspect if wanted_aspect in queries.aspects else ""
    asked = query.get("q", "").strip()[:LONGEST]
    fitting = queries.fitting(asked, aspect).tolist()
    found = [each for each, fits in zip(queries.rows.items(), fitting, strict=True) if fits]
    pages = max(1, -(-len(found) // PAGE_QUERIES))
    said = query.get("page", "")
    here = min(max(int(said), 1), pages) if said.isdecimal() and len(said) < 10 else 1
    remarks = [
        f"There is no {word} {wanted[:LONGEST]} here; {instead}."
        for word, wanted, taken, instead in (
            ("member", wanted_member, member, f"{member} is shown"),
            ("aspect", wanted_aspect, aspect, "all are shown"),
            ("page", said, str(here), f"page {here} of {pages} is shown"),
        )
        if wanted not in ("", taken)
    ]
    first = (here - 1) * PAGE_QUERIES
    kept = {"tab": "queries", "member": "" if member == board.benchmarks[0] else member}
    kept |= {"aspect": aspect, "q": asked}
    unit = "session" if queries.longest > 1 else "query"
    several = "sessions" if queries.longest > 1 else "queries"
    values = {
        "board": board,
        "path": f"b/{quote(board.id)}",
        "tab": "queries",
        "tabs": tabs,
        "unit": unit,
        "several": several,
        "remarks": remarks,
        "about": _counted(len(found), len(queries.rows), first, unit, several),
        "kept": kept,
        "asked": asked,
        "aspect": aspect,
        "aspects": [(name, int(each.sum())) for name, each in queries.aspects.items()],
        "member": member,
        "members": board.benchmarks if board.takes_bundles else (),
        "queries": [_line(site, queries.spec, *each) for each in found[first : first + PAGE_QUERIES]],
        "pages": [(each, each == here) for each in linked_pages(here, pages)] if pages > 1 else [],
    }
    chosen = [kept["member"], aspect, f"“{asked}”" if asked else "", f"page {here}" if here > 1 else ""]
    title = ", ".join([f"{board.title}: {several}", *filter(None, chosen)])
    about = f"The {several} of {board.title}, each with what methods rank first for it."
    return Page("board/queries.html", title, about, values)


def _line(site: Site, spec: BenchmarkSpec, name: str, row: Row) -> dict[str, Any]:
    turns = row.get("turns") or [row]
    reference = turns[0]["reference_image_id"]
    return {
        "id": name,
        "caption": caption_of(turns[0]),
        "turns": len(turns),
        "aspects": row.get("aspects") or (),
        "reference": reference,
        "picture": reference
        and (picture_path(spec, reference) or hosted_path(site.server.settings.pictures, spec, reference)),
    }


def _counted(matching: int, total: int, first: int, unit: str, several: str) -> str:
    """How many there are, and which of them stand here."""
    whole = f"{total:,} {unit if total == 1 else several}"
    among = whole if matching == total else f"{matching:,} of {whole}"
    if matching <= PAGE_QUERIES:
        return f"{among}."
    return f"{first + 1:,} to {min(first + PAGE_QUERIES, matching):,} of {among}."
