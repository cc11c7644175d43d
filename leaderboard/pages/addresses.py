"""The table of addresses and their pages, which the server and the static mirror share.

A page's module is imported when the page is first asked for, so that the API loads none of them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from importlib import import_module
from urllib.parse import quote, unquote

from cir_metrics.catalogue import METRICS
from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.errors import UploadRefusedError
from leaderboard.pages.site import NO_PAGE, SHORTENED, Page, Site, missing_page, shortened

Query = Mapping[str, str]
"""The query parameters of an address; values of a name that stands there twice are joined by a comma."""


_PAGES = {
    "": "home_page:page",
    "b/(.+)/q/([^/]+)": "query_page:page",
    "b/(.+)": "board.page:page",
    "e/([^/]+)": "entry_page:page",
    "published": "published_page:page",
    "m": "metric_page:all_page",
    "m/([^/]+)": "metric_page:one_page",
    "compare": "compare_page:page",
    "status": "status_page:page",
    "about": "about_page:page",
}
"""By the pattern of a path the module and the function of its page, which takes the site, the query and the
decoded groups. First match counts."""

FIRST_PARTS = tuple(dict.fromkeys(pattern.partition("/")[0] for pattern in _PAGES))
"""What the paths of pages begin with, before their first slash."""


_NOT_SHOWN = re.compile("[\\x00-\\x1f\\x7f-\\x9f]")
"""Control characters, which no id and no name has, and no page repeats."""


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
    like = difflib.get_close_matches(name.partition("@")[0][:SHORTENED], known, 3, 0.5)
    near = dict.fromkeys((f"{first}/{quote(known[each])}", known[each]) for each in like)
    return missing_page("Not found", f"There is no {kind} {shortened(name)} here.", fix, tuple(near))


def _not_found(message: str, fix: str = "") -> Page:
    from leaderboard.pages.findings import sentence

    return missing_page("Not found", sentence(message), fix)


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
        for pattern, place in _PAGES.items():
            found = re.fullmatch(pattern, path)
            if found:
                parts = [_NOT_SHOWN.sub("\ufffd", unquote(part)) for part in found.groups()]
                module, _, function = place.partition(":")
                page: Page = getattr(import_module(f"leaderboard.pages.{module}"), function)(
                    site, query, *parts
                )
                return page
    except UnknownNameError as error:
        return _unknown(path, error)
    except UploadRefusedError as error:
        return _not_found(error.message, f"Fix: {error.fix}.")
    return NO_PAGE
