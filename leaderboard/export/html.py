"""The static mirror: the site's pages as files, for a browser alone or any place that serves files.

Pages are followed from the boards on, by the links that they make. A link names a file of the mirror, or
nothing: what needs a server (submissions, searches, filters, other orders of a table) has no file, and
templates then write plain words. Nobody is signed in here, so that a mirror holds what everybody may read.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import posixpath
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, unquote, urlencode

import httpx
import yaml
from fastapi import FastAPI

from cir_datasets.common.atomic import staging_folder, write_errors
from cir_metrics.catalogue import package_version
from cir_metrics.errors import CallError, CirError
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.pages.addresses import page_at
from leaderboard.pages.published_tables import published_benchmarks
from leaderboard.pages.queries import queries_of, why_hidden
from leaderboard.pages.site import Links, Site, assets
from leaderboard.server import Server
from leaderboard.standings.tables import Tables
from leaderboard.standings.views import group_leaders
from leaderboard.web import api, site_routes
from leaderboard.web.reading import SUFFIXES

MARKER = "mirror.json"
"""Says that a folder is a mirror, and of what; a folder with others' files has none."""
_PARTIAL = ".cir-mirror-"
_LONGEST = 120
"""Characters of a part of a file's name; systems take 255 bytes."""
_WHOLE = ("", "m", "published", "about")
_FORMATS = ("csv", "json", "parquet", "latex", "bibtex")
_DOWNLOAD = re.compile(r"api/v1/boards/(?P<board>.+)")
_PUBLISHED = "api/v1/published"
_QUERY = re.compile(r"b/(?P<board>.+)/q/(?P<query>[^/]+)")
_HOLLOW = re.compile(r'(<a\b[^<>]*?) href=""')

Address = tuple[str, tuple[tuple[str, str], ...]]
"""A path, its parts percent-encoded, and what stands behind its ?."""


@dataclass(frozen=True)
class Mirrored:
    """What was written.

    Args:
        pages: number of pages.
        files: number of all files.
        size: of all, in bytes.
        left_out: query pages left out, by board.
    """

    pages: int
    files: int
    size: int
    left_out: Mapping[str, int]


class MirrorLinks(Links):
    """Addresses as a page of the mirror writes them: of files beside it.

    Args:
        here: path of the page on the server.
        file: its file.
        file_of: gives the file of an address, or nothing.
        note: a sentence on what this copy is.
    """

    live = False

    def __init__(self, here: str, file: str, file_of: Callable[[Address, str], str], note: str) -> None:
        """Remember where the page is, on the server and in the folder."""
        super().__init__(here)
        self._file, self._file_of = file, file_of
        self.note = note

    def __call__(self, path: str = "", anchor: str = "", **query: object) -> str:
        """The address of a file; empty where the mirror has none."""
        said = ((name, str(value)) for name, value in query.items() if value not in (None, ""))
        found = self._file_of((path, tuple(sorted(said))), self._file)
        if not found:
            return ""
        relative = posixpath.relpath(found, posixpath.dirname(self._file) or ".")
        return quote(relative) + (f"#{quote(anchor)}" if anchor else "")

    def file(self, path: str) -> str:
        """The address of a style sheet, script or picture; it is a file of this copy and needs no version."""
        return self(path)


@dataclass
class _Crawl:
    """What is known of the mirror while it grows: the addresses by file, and who links to them."""

    files: dict[str, Address] = field(default_factory=dict)
    by_address: dict[Address, str] = field(default_factory=dict)
    linked: dict[Address, set[str]] = field(default_factory=dict)
    rows: dict[str, str] = field(default_factory=dict)
    refused: set[Address] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    folded: set[str] = field(default_factory=set)


class Mirror:
    """A mirror in the making.

    Args:
        server: whose pages it shows.
        queries: query pages of a board, at most.
        at: when it is made, UTC.
    """

    def __init__(self, server: Server, queries: int, at: datetime) -> None:
        """Find what may be shown, and make the lists that pages show; no file is written."""
        # A server at work on the same store may keep a table without groups while this goes on.
        tables = Tables(server.store, server.settings.max_upload_bytes, at_once=True)
        server = replace(server, tables=tables)
        self.site = Site(server)
        self._entries: set[str] = set()
        self._leaders: set[str] = set()
        self._queries: dict[str, set[str]] = {}
        self.left_out: dict[str, int] = {}
        self._crawl = _Crawl()
        self._waiting: deque[Address] = deque()
        self._app = FastAPI()
        for router in (*api.routers(server), site_routes.router(server)):
            self._app.include_router(router)
        self._boards = boards.boards()
        for board in self._boards:
            self._look(server, board, queries)
        name, made = server.settings.name, f"{at:%Y-%m-%d %H:%M} UTC"
        bound = f" It has at most {queries:,} query pages a board." if self.left_out else ""
        self._note = f"A copy of {name} to read, made on {made} by cir leaderboard export-html.{bound}"

    def _look(self, server: Server, board: Board, queries: int) -> None:
        rows = server.tables.refresh(board).view["rows"]
        self._entries |= {row["submission"] for row in rows}
        self._leaders |= {row["submission"] for row in group_leaders(rows)}
        known = query_ids(self.site, board)
        self._queries[board.id] = set(known[:queries])
        if len(known) > queries:
            self.left_out[board.id] = len(known) - queries

    def write(self, folder: Path, advance: Callable[[int], None]) -> Mirrored:
        """Write all files.

        Args:
            folder: empty.
            advance: is told of each page.
        """
        pages = 0
        # The boards come first, so that links to their rows know on which page these stand.
        for path in [*(f"b/{quote(board.id)}" for board in self._boards), ""]:
            self._file_of((path, ()), "")
            for form in _FORMATS if path else ():
                self._file_of((path.replace("b/", "api/v1/boards/", 1), (("format", form),)), "")
            pages += self._write_waiting(folder, advance)
        for refused in self._crawl.refused:
            self._crawl.unsure |= self._crawl.linked.get(refused, set())
        for file in self._crawl.unsure & self._crawl.files.keys():
            self._write_page(folder, self._crawl.files[file])
        for path in assets():
            self._save(folder, path, self._answer(path, ()))
        files = [path for path in folder.rglob("*") if path.is_file()]
        return Mirrored(pages, len(files), sum(path.stat().st_size for path in files), self.left_out)

    def _write_waiting(self, folder: Path, advance: Callable[[int], None]) -> int:
        pages = 0
        while self._waiting:
            address = self._waiting.popleft()
            path, query = address
            if path.startswith("site/") or path == _PUBLISHED or _DOWNLOAD.fullmatch(path):
                self._save(folder, self._crawl.by_address[address], self._answer(path, query))
            elif self._write_page(folder, address):
                pages += 1
                advance(1)
        return pages

    def _write_page(self, folder: Path, address: Address) -> bool:
        path, query = address
        file = self._crawl.by_address[address]
        page = page_at(self.site, path, dict(query)) if self._is_made(path, dict(query)) else None
        if page is None or page.status != 200:
            self._crawl.refused.add(address)
            del self._crawl.files[file]
            self._crawl.folded.discard(file.casefold())
            return False
        html = self.site.written(page, MirrorLinks(path, file, self._file_of, self._note))
        # A link to what is not here becomes words: an empty address would be the page itself.
        html = _HOLLOW.sub(r"\1", html)
        for found in re.finditer(r'\bid="entry-([^"]+)"', html):
            self._crawl.rows.setdefault(f"{path} {found[1]}", file)
        self._save(folder, file, html.encode())
        return True

    def _is_made(self, path: str, query: Mapping[str, str]) -> bool:
        """Whether what a page shows is known, after making it where that takes long."""
        if path != "compare":
            return True
        server = self.site.server
        entries = [server.store.submission(name) for name in query["e"].split(",")]
        kept = [entry for entry in entries if entry is not None]
        if len(kept) < 2:  # others were erased meanwhile
            return False
        try:
            return server.compared.of(kept, None) is not None
        except CirError:  # entries that do not compare
            return False

    def _file_of(self, address: Address, here: str) -> str:
        """The file of an address, which is then made; empty where there is none."""
        path, query = address
        if path.startswith("b/") and ("page", "1") in query:
            address = path, query = path, tuple(each for each in query if each != ("page", "1"))
        if _QUERY.fullmatch(path) and not _QUERY.fullmatch(self._crawl.files.get(here, ("", ()))[0]):
            # From elsewhere the query is what matters; a filter of its own page would be another page.
            address = path, query = path, ()
        row = dict(query).get("entry", "")
        if row and path.startswith("b/"):
            file = self._crawl.rows.get(f"{path} {row}", "")
            if not file:
                self._crawl.unsure.add(here)
            return file
        if address in self._crawl.refused or not self._has(path, dict(query)):
            return ""
        if here:
            self._crawl.linked.setdefault(address, set()).add(here)
        file = self._crawl.by_address.get(address, "")
        if not file:
            file = self._free(file_name(path, dict(query)))
            self._crawl.files[file] = address
            self._crawl.by_address[address] = file
            self._waiting.append(address)
        return file

    def _free(self, file: str) -> str:
        """A name that no other file has where capitals do not count."""
        stem, dot, ending = file.rpartition(".")
        number = 1
        while file.casefold() in self._crawl.folded:
            number += 1
            file = f"{stem}~{number}{dot}{ending}"
        self._crawl.folded.add(file.casefold())
        return file

    def _has(self, path: str, query: Mapping[str, str]) -> bool:
        """Whether the mirror holds a page for this address."""
        if path in assets() or path.startswith("site/pictures/"):
            # What a host shows of a publisher's pictures is not passed on.
            return not (query or path.startswith("site/pictures/of/"))
        first, _, rest = path.partition("/")
        if path in _WHOLE or (first == "m" and rest):
            return not query or (path == "published" and query.get("benchmark") in published_benchmarks())
        if first == "e":
            return not query and unquote(rest) in self._entries
        if path == "compare":
            asked = query.get("e", "").split(",")
            return set(query) == {"e"} and len(asked) == 2 and set(asked) <= self._leaders
        one = _QUERY.fullmatch(path)
        if one:
            return not query and unquote(one["query"]) in self._queries.get(unquote(one["board"]), ())
        if first == "b":
            whole = set(query) <= {"tab", "page", "metric", "member"} and query.get("page") != "all"
            return whole and unquote(rest) in self._queries
        if path == _PUBLISHED:
            return set(query) == {"board"} and query["board"] in self._queries
        download = _DOWNLOAD.fullmatch(path)
        if download:
            return set(query) <= {"format"} and unquote(download["board"]) in self._queries
        return False

    def _answer(self, path: str, query: tuple[tuple[str, str], ...]) -> bytes:
        """What the server answers with: a file that pages link to."""

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.get(f"/{path}" + (f"?{urlencode(query)}" if query else ""))

        return asyncio.run(ask()).raise_for_status().content

    def _save(self, folder: Path, file: str, content: bytes) -> None:
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def file_name(path: str, query: Mapping[str, str]) -> str:
    """The file of an address.

    Args:
        path: without a slash in front, its parts percent-encoded.
        query: of the address.

    Example:
        >>> file_name("b/shapes/val", {"tab": "aspects"})
        'b/shapes/val/tab-aspects.html'
        >>> file_name("b/shapes/val/q/..%2Fa%3Cb", {})
        'b/shapes/val/q/..%2Fa%3Cb/index.html'
        >>> file_name("api/v1/boards/shapes/val", {"format": "csv"})
        'b/shapes/val/board.csv'
        >>> file_name("api/v1/boards/shapes/val", {"format": "latex"})
        'b/shapes/val/board.tex'
        >>> file_name("api/v1/published", {"board": "cirr/val"})
        'b/cirr/val/published.csv'
        >>> file_name("site/pictures/shapes/2/val-000123.png", {})
        'site/pictures/shapes/2/val-000123.png'
    """
    download = _DOWNLOAD.fullmatch(path)
    if download:
        form = query.get("format", "json")
        folder, name = f"b/{download['board']}", f"board.{SUFFIXES.get(form, form)}"
    elif path == _PUBLISHED:
        folder, name = f"b/{query['board']}", "published.csv"
    elif path.startswith("site/"):
        folder, _, name = path.rpartition("/")
    else:
        folder = path
        name = "-".join(part for pair in sorted(query.items()) for part in pair).replace(",", "-") or "index"
        name = f"{_part(name)}.html"
    return "/".join([*(_part(unquote(part)) for part in folder.split("/") if part), name])


def _part(text: str) -> str:
    """A part of a path that every file system takes."""
    safe = quote(text, safe="@")
    safe = safe.replace(".", "%2E") if safe.strip(".") == "" else safe
    if len(safe) > _LONGEST:
        return f"{safe[:_LONGEST]}~{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return safe


def query_ids(site: Site, board: Board) -> list[str]:
    """The queries of a board that have pages here, in the benchmark's order.

    Args:
        site: of the server.
        board: the board.
    """
    # Only what was prepared already: a mirror is no reason to download or to make anything.
    if why_hidden(site, board):
        return []
    return [name for benchmark in board.benchmarks for name in queries_of(benchmark).rows]


def write_mirror(
    server: Server, folder: Path, queries: int, at: datetime, advance: Callable[[int], None]
) -> Mirrored:
    """Write a mirror, whole or not at all; it takes the place of an earlier one.

    Args:
        server: whose pages it shows.
        folder: new, empty, or an earlier mirror.
        queries: query pages of a board, at most.
        at: when it is made, UTC.
        advance: is told of each page.

    Raises:
        CallError: the folder holds something else, or cannot be written.
    """
    folder = folder.absolute()
    check_folder(folder)
    fix = "name another folder."
    staged = staging_folder(folder.parent, _PARTIAL, error=CallError, fix=fix)
    with staged as made, write_errors(folder, CallError, fix):
        said = Mirror(server, queries, at).write(made, advance)
        (made / "README.md").write_text(_space_card(server.settings.name), encoding="utf-8")
        about = {
            "format": "cir-mirror",
            "made_at": at.isoformat(),
            "of": server.settings.url,
            "version": package_version(),
        }
        (made / MARKER).write_text(json.dumps(about), encoding="utf-8")
        # Someone may have put something there meanwhile.
        check_folder(folder)
        earlier = made.parent / "earlier"
        if folder.exists():
            folder.replace(earlier)
        made.replace(folder)
    return said


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds what is not a mirror's.

    Raises:
        CallError: it does.
    """
    fix = "Fix: name a new folder, an empty one, or an earlier mirror."
    if folder.exists() and not folder.is_dir():
        raise CallError(f"{folder} is a file, not a folder. {fix}")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARKER).is_file():
        raise CallError(f"{folder} holds files and is not a mirror: they would be lost. {fix}")


def _space_card(name: str) -> str:
    """What a Space of the Hub reads: plain files, no program."""
    head = {"title": name, "sdk": "static", "app_file": "index.html", "pinned": False}
    return (
        f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True)}---\n\n"
        "Made by `cir leaderboard export-html`. Open `index.html`, or serve this folder as files.\n"
    )
