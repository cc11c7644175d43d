"""What the Space shows, as HTML: the values are those of the server's tables, pages and findings."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from jinja2 import ChoiceLoader, Environment, PackageLoader

from cir_datasets.pages import page_environment
from cir_metrics.catalogue import package_version
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.errors import UploadRefusedError
from leaderboard.pages import submission_page
from leaderboard.pages.addresses import page_at
from leaderboard.pages.figures import number
from leaderboard.pages.findings import grouped, refusal, sentence, with_commands
from leaderboard.pages.labels import metric_label
from leaderboard.pages.queries import queries_of, why_hidden
from leaderboard.pages.site import Site, query_path
from leaderboard.server import Server
from leaderboard.server.callers import Sender
from leaderboard.server.preparing import ToPrepare
from leaderboard.standings.views import method_name, state_words
from leaderboard.standings.views import submission_page as address_of
from leaderboard.store.submission import Submission

FULL = "full"
"""Path below which the full pages are."""
_LOOKS = 15
"""Looks at a comparison that is being made, each of two seconds."""


@functools.cache
def _templates() -> Environment:
    made = page_environment().overlay(
        loader=ChoiceLoader([PackageLoader("leaderboard.space"), PackageLoader("cir_datasets.pages")])
    )
    made.filters |= {"value": number, "sentence": sentence, "with_commands": with_commands}
    made.globals |= {"full": FULL, "metric_label": metric_label}
    return made


def _filled(template: str, **values: Any) -> str:
    return _templates().get_template(f"{template}.html").render(**values)


def unready(server: Server) -> list[ToPrepare]:
    """The benchmarks that are being prepared."""
    return [one for one in (server.preparing.steps if server.preparing else ()) if one.state != "ready"]


def head(server: Server, who: str) -> str:
    """Name, who is signed in, and what everybody must know: what is prepared, what does not last."""
    return _filled("head", server=server, who=who, steps=unready(server))


def home(site: Site) -> str:
    """All boards as one table, those with entries first."""
    return _filled("home", **page_at(site, "", {}).values)


def board(site: Site, one: Board) -> tuple[str, bool]:
    """A board: a line on its protocol, and its table of entries; whether its groups are being made."""
    path, asked = f"b/{quote(one.id)}", {"page": "all", "hide": "published"}
    view = site.server.tables.of(one).view
    html = _filled("board", **page_at(site, path, asked).values, state=state_words(view))
    return html, view["groups_pending"] and not one.sealed


def choices(server: Server, one: Board) -> list[tuple[str, str]]:
    """The entries of a board to choose from."""
    rows = server.tables.of(one).view["rows"]
    return [(f"{method_name(row)} ({row['submission'][:6]})", row["submission"]) for row in rows]


def first_query(site: Site, one: Board) -> str:
    """Id of a board's first query; empty where its queries are not shown."""
    return "" if why_hidden(site, one) else str(next(iter(queries_of(one.benchmarks[0]).rows)))


def query(site: Site, board_id: str, query_id: str, entry: str | None) -> tuple[str, str, str]:
    """A query with what an entry ranks first; and the ids of the queries before and behind it."""
    if not board_id:
        return said("Choose a board above: its queries stand here."), "", ""
    path = query_path(board_id, query_id)
    page = page_at(site, path, {"e": entry} if entry else {})
    if page.data is None:
        return said(why_hidden(site, boards.board(board_id)) or page.description), "", ""
    src = {image: f"{FULL}/{place}" for image, place in page.values["pictures"].items() if place}
    html = _filled("one_query", **page.values, src=src, path=path)
    return html, str(page.data["previous"] or ""), str(page.data["next"] or "")


def comparison(site: Site, board_id: str, one: str | None, other: str | None) -> str:
    """Two entries of a board side by side; one that is being made is waited for."""
    if not one or not other:
        return said("A board with one entry has nothing to compare." if board_id else "Choose a board above.")
    path = f"compare?e={one},{other}"
    for _ in range(_LOOKS):
        page = page_at(site, "compare", {"e": f"{one},{other}"})
        if page.template != "compare_waiting.html":
            break
    if "pairs" not in page.values:
        return said(page.values.get("said") or page.description)
    return _filled("comparison", **page.values, pair=page.values["pairs"][0], path=path)


def findings(listed: Sequence[Mapping[str, Any]], words: str, *, good: bool) -> str:
    """What validation found, grouped, below a sentence."""
    return _filled("findings", groups=grouped(listed), words=words, kind="good" if good else "bad")


def refused(error: UploadRefusedError) -> str:
    """Why a file is not taken."""
    return _filled("findings", groups=refusal(error), words="The file is not taken.", kind="bad")


def said(words: str, kind: str = "") -> str:
    """A sentence."""
    return _filled("said", words=words, kind=kind)


def became(site: Site, submission: Submission, sender: Sender) -> str:
    """What has become of a submission, with its findings and the way to its own page."""
    found = submission_page.page(site, submission, "owner").values
    address = address_of(submission.id, sender.edit_key)
    return _filled("became", **found, address=address, secret=bool(sender.edit_key))


def mine(found: Sequence[Submission]) -> str:
    """A table of somebody's own submissions, the latest first."""
    return _filled("mine", rows=found[::-1])


def about() -> str:
    """What all of it is."""
    return _filled("about", version=package_version())
