"""The site of reading pages: templates, the way from page to page, and what all pages share.

A page is made of values and a template, without a request: the server answers with it, and the static mirror
writes it. Links are relative, so that a server below a prefix and a folder of files work alike.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from cir_datasets.images import COCO_PICTURES
from cir_metrics.catalogue import package_version
from leaderboard.server import Server
from submissions.rank_file.texts import is_link

if TYPE_CHECKING:
    from jinja2 import Environment

STYLE, SCRIPT, ICON = "site/site.css", "site/site.js", "site/icon.svg"
SUBMISSION_SCRIPT, SUBMIT_SCRIPT = "site/submission.js", "site/submit.js"
KEYS, CARDS = "site/queries.js", "site/query.css"
SUBMIT_PATH = "submit"
"""Of the submit page, which the API's routes know without loading it."""
PAGE_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
    )
)
"""Of the reading pages, which hold no script and no style of their own."""

COCO_POLICY = PAGE_POLICY.replace("img-src 'self'", f"img-src 'self' {COCO_PICTURES}")
"""Of a page on which a reader has asked for them."""

FRAMED_POLICY = PAGE_POLICY.replace("form-action 'self'", "form-action 'none'")
"""Of a page that other sites may show in a frame."""

UNREAD = (
    "an earlier version scored it, or its data has changed since, so that its lists are not here. "
    "The organiser has it scored again: cir leaderboard rescore."
)
"""What is said where an entry's lists may be shown and are not here."""

_NAVIGATION = (
    ("", "Boards"),
    ("published", "Published results"),
    ("m", "Metrics"),
    ("submit", "Submit"),
    ("about", "About"),
)
_LIVE_ONLY = ("submit",)
"""Pages that need the server, and that a mirror has not."""


@dataclass(frozen=True)
class Page:
    """A page before it is written.

    Args:
        template: file name of its template, which extends `layout.html`.
        title: what the window's title and `og:title` say; the site's name is put behind.
        description: a sentence of at most about 160 characters, for searches and previews.
        values: what the template asks for.
        status: HTTP status.
        image: path of a picture for previews, or empty.
        section: path of the entry of the navigation that it belongs to.
        policy: what it may load, as its Content-Security-Policy says.
        data: the same as JSON values, for `?format=json`; None where a page has no such form.
    """

    template: str
    title: str
    description: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    image: str = ""
    section: str = ""
    policy: str = PAGE_POLICY
    data: Mapping[str, Any] | None = None


class Links:
    """Addresses as one page writes them.

    Args:
        here: path of the page without a slash in front, `b/shapes/val`.

    Example:
        >>> Links("b/shapes/val")("e/289f32ba7118", anchor="ranks", k=5)
        '../../e/289f32ba7118?k=5#ranks'
    """

    live = True
    """Whether a server answers: forms, searches and submissions work."""

    def __init__(self, here: str) -> None:
        """Remember where the page is."""
        self.here = here

    def __call__(self, path: str = "", anchor: str = "", **query: object) -> str:
        """The address of a page; empty where the site has no such page.

        Args:
            path: of the page, its parts percent-encoded.
            anchor: id of an element on it.
            query: its further choices; those that are None or empty are left out.
        """
        up = "../" * self.here.count("/") or "./"
        said = {name: value for name, value in query.items() if value not in (None, "")}
        asked = f"?{urlencode(said, doseq=True, safe=',')}" if said else ""
        return f"{up}{path}{asked}" + (f"#{quote(anchor)}" if anchor else "")

    def file(self, path: str) -> str:
        """The address of a style sheet, script or picture of the site."""
        return self(path, v=asset_version(path)) if path in _ASSETS else self(path)


SHORTENED = 60
"""Characters that are shown of a name that nothing has."""


def shortened(name: str, most: int = SHORTENED) -> str:
    """A name that may be longer than a line.

    Args:
        name: as an address has it.
        most: characters that are shown.
    """
    return name if len(name) <= most else f"{name[:most]}…"


def query_path(board_id: str, query_id: str) -> str:
    """Path of the page of one query.

    Example:
        >>> query_path("shapes/val", "a/b")
        'b/shapes/val/q/a%2Fb'
    """
    return f"b/{board_id}/q/{quote(query_id, safe='')}"


_ASSETS = {
    STYLE: ("leaderboard.pages", "templates/site.css", "text/css; charset=utf-8"),
    SCRIPT: ("leaderboard.pages", "templates/site.js", "text/javascript; charset=utf-8"),
    SUBMIT_SCRIPT: ("leaderboard.pages", "templates/submit.js", "text/javascript; charset=utf-8"),
    SUBMISSION_SCRIPT: ("leaderboard.pages", "templates/submission.js", "text/javascript; charset=utf-8"),
    KEYS: ("leaderboard.pages", "templates/queries.js", "text/javascript; charset=utf-8"),
    CARDS: ("cir_datasets.pages", "templates/query.css", "text/css; charset=utf-8"),
    ICON: ("leaderboard.pages", "icon.svg", "image/svg+xml"),
}


def assets() -> tuple[str, ...]:
    """Paths of the files that pages need besides themselves."""
    return tuple(_ASSETS)


@functools.cache
def asset(path: str) -> tuple[bytes, str]:
    """A style sheet, script or icon: its bytes and its media type."""
    package, name, media_type = _ASSETS[path]
    return (resources.files(package) / name).read_bytes(), media_type


@functools.cache
def asset_version(path: str) -> str:
    """Names the content of a file, so that browsers may keep it."""
    return hashlib.sha256(asset(path)[0]).hexdigest()[:12]


class Site:
    """All reading pages of one server.

    Args:
        server: the leaderboard.
    """

    def __init__(self, server: Server) -> None:
        """Nothing is read before a page is asked for."""
        self.server = server

    @property
    def name(self) -> str:
        """What the server calls itself."""
        return self.server.settings.name

    def written(self, page: Page, links: Links) -> str:
        """A page as HTML.

        Args:
            page: what it holds.
            links: of the place where it will be.
        """
        address = self.server.settings.url
        return (
            environment()
            .get_template(page.template)
            .render(
                page=page,
                to=links,
                live=links.live,
                site=self.name,
                policy=page.policy,
                # What the address of a copy is, nobody knows here.
                canonical=f"{address}/{links.here}" if address and links.live else "",
                picture=f"{address}/{page.image}" if address and links.live and page.image else "",
                navigation=[
                    (path, name) for path, name in _NAVIGATION if links.live or path not in _LIVE_ONLY
                ],
                version=package_version(),
                alarms=self.server.alarms if links.live else (),
                **page.values,
            )
        )


@functools.cache
def environment() -> Environment:
    """Jinja with the templates of these pages, and behind them those that all packages share.

    Example:
        >>> environment().from_string("{{ 0.49833 | value('percent') }}").render()
        '49.83'
    """
    from jinja2 import ChoiceLoader, PackageLoader

    from cir_datasets.pages import page_environment
    from leaderboard.pages.figures import chance, number
    from leaderboard.pages.findings import sentence, with_commands

    made = page_environment().overlay(
        loader=ChoiceLoader([PackageLoader("leaderboard.pages"), PackageLoader("cir_datasets.pages")])
    )
    made.filters["value"] = number
    made.filters["chance"] = chance
    made.filters["https"] = lambda url: url if isinstance(url, str) and is_link(url) else ""
    made.filters["addressed"] = _addressed
    made.filters["with_commands"] = with_commands
    made.filters["sentence"] = sentence
    made.globals["query_path"] = query_path
    return made


def _addressed(paths: Mapping[str, str], to: Links) -> dict[str, str]:
    """Paths by name as addresses, which publishers' addresses are; those that are empty are left out."""
    return {name: path if path.startswith("https:") else to(path) for name, path in paths.items() if path}


def missing_page(
    what: str, words: str, fix: str = "", near: Sequence[tuple[str, str]] = (), status: int = 404
) -> Page:
    """The page for a missing address.

    Args:
        what: the heading, such as `No such board`.
        words: a sentence that says more.
        fix: a sentence that says where to go.
        near: pages that may be meant, as paths and what they are called.
        status: of the answer.
    """
    return Page("missing.html", what, words, {"words": words, "fix": fix, "near": near}, status=status)


NO_PAGE = missing_page(
    "Not found",
    "There is no page at this address.",
    "It may be mistyped, or cut where it was copied. What is here can be reached from one of these pages:",
)
"""The page in the place of an address that nothing has."""
