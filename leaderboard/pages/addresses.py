"""The table of addresses and their pages, which the server and the static mirror share.

A page's module is imported when the page is first asked for, so that the API loads none of them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from urllib.parse import quote, unquote

from cir_metrics.catalogue import METRICS
from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.errors import UploadRefusedError
from leaderboard.pages.site import NO_PAGE, Page, Site, missing_page

Query = Mapping[str, str]
"""The query parameters of an address; values of a name that stands there twice are joined by a comma."""


def _home(site: Site, _query: Query) -> Page:
    from leaderboard.pages import home_page

    return home_page.page(site)


def _board(site: Site, query: Query, board_id: str) -> Page:
    from leaderboard.pages.board import page, tabs

    board = boards.board(board_id)
    return tabs.page(site, board, query) or page.page(site, board, query)


def _query(site: Site, query: Query, board_id: str, query_id: str) -> Page:
    from leaderboard.pages import query_page

    # A board may have an id that looks like this.
    if f"{board_id}/q/{query_id}" in boards.ids():
        return _board(site, query, f"{board_id}/q/{query_id}")
    return query_page.page(site, boards.board(board_id), query_id, query)


def _entry(site: Site, _query: Query, submission_id: str) -> Page:
    from leaderboard.pages import entry_page

    try:
        return entry_page.page(site, submission_id)
    except UploadRefusedError:
        return missing_page(
            "No such entry",
            f"There is no entry {_shortened(submission_id)} here that everybody may read.",
            "It may have been withdrawn, or its owner keeps it private. Each board lists its entries.",
        )


def _published(site: Site, query: Query) -> Page:
    from leaderboard.pages import published_page

    return published_page.page(site, query)


def _metrics(_site: Site, _query: Query) -> Page:
    from leaderboard.pages import metric_page

    return metric_page.all_page()


def _metric(_site: Site, _query: Query, name: str) -> Page:
    from leaderboard.pages import metric_page

    return metric_page.one_page(name)


def _compare(site: Site, query: Query) -> Page:
    from leaderboard.pages import compare_page

    return compare_page.page(site, query)


def _status(site: Site, _query: Query) -> Page:
    from leaderboard.pages import status_page

    return status_page.page(site)


def _about(_site: Site, _query: Query) -> Page:
    from leaderboard.pages import about_page

    return about_page.page()


_PAGES: dict[str, Callable[..., Page]] = {
    "": _home,
    "b/(.+)/q/([^/]+)": _query,
    "b/(.+)": _board,
    "e/([^/]+)": _entry,
    "published": _published,
    "m": _metrics,
    "m/([^/]+)": _metric,
    "compare": _compare,
    "status": _status,
    "about": _about,
}
"""By the pattern of a path the function of its page, which takes the decoded groups. First match counts."""

FIRST_PARTS = tuple(dict.fromkeys(pattern.partition("/")[0] for pattern in _PAGES))
"""What the paths of pages begin with, before their first slash."""


_NOT_SHOWN = re.compile("[\\x00-\\x1f\\x7f-\\x9f]")
"""Control characters, which no id and no name has, and no page repeats."""
_LONGEST = 60
"""Characters of an unknown name that are shown."""


def _unknown(path: str, error: UnknownNameError) -> Page:
    """The page in the place of an unknown board or metric, with links to the ones of a like name."""
    first, _, rest = path.partition("/")
    kind, known, fix = {
        "b": (
            "board",
            {name: name for name in boards.ids()},
            "The home page lists every board, with and without entries.",
        ),
        "m": (
            "metric",
            {entry.printed: name for name, entry in METRICS.items()} | {name: name for name in METRICS},
            "The page of all metrics lists them, and every board links to its own.",
        ),
    }.get(first, ("", {}, ""))
    name = _NOT_SHOWN.sub("\ufffd", unquote(re.sub("/(q/[^/]+|plot)$", "", rest)))
    if not kind or name in boards.ids():
        return _not_found(str(error))
    like = difflib.get_close_matches(name.partition("@")[0][:_LONGEST], known, 3, 0.5)
    near = dict.fromkeys((f"{first}/{quote(known[each])}", known[each]) for each in like)
    return missing_page("Not found", f"There is no {kind} {_shortened(name)} here.", fix, tuple(near))


def _not_found(message: str, fix: str = "") -> Page:
    from leaderboard.pages.findings import sentence

    return missing_page("Not found", sentence(message), fix)


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"


def page_at(site: Site, path: str, query: Query) -> Page:
    """The page of an address; where there is none, a page with the status 404 that says so.

    Args:
        site: of the server.
        path: without a slash in front, its parts percent-encoded.
        query: of the address.

    Example:
        >>> page_at(None, "no/such", {}).status
        404
    """
    query = {name: _NOT_SHOWN.sub("\ufffd", said) for name, said in query.items()}
    try:
        for pattern, make in _PAGES.items():
            found = re.fullmatch(pattern, path)
            if found:
                parts = [_NOT_SHOWN.sub("\ufffd", unquote(part)) for part in found.groups()]
                return make(site, query, *parts)
    except UnknownNameError as error:
        return _unknown(path, error)
    except UploadRefusedError as error:
        return _not_found(error.message, f"Fix: {error.fix}.")
    return NO_PAGE
