"""The reading half of the API: boards, their entries, the feed, and the list of all routes.

What is read can be read again for nothing: every answer has an ETag, and a request that names it gets 304.
The tables come from `leaderboard.standings.tables`.
"""

from __future__ import annotations

import gzip
import hashlib
from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping
from operator import itemgetter
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import orjson
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse, Response

from leaderboard import boards
from leaderboard.errors import refuse_unknown
from leaderboard.identity.receipts import public_pem
from leaderboard.intake import known_board
from leaderboard.pages.site import PAGE_POLICY, Links, Site
from leaderboard.server import Server
from leaderboard.standings.tables import KeptTable
from leaderboard.standings.views import board_view
from leaderboard.web.schemas import FAILURES, BoardsAnswer, HealthAnswer, PageAnswer, TableAnswer

VERSION, UNVERSIONED = "/api/v1", "/api"
"""What paths begin with; the second is that of the first clients."""

_JSON = "application/json"
_HTML = "text/html; charset=utf-8"
_CSV = "text/csv; charset=utf-8"
_PARQUET = "application/vnd.apache.parquet"
_LATEX = "application/x-latex; charset=utf-8"
_BIBTEX = "application/x-bibtex; charset=utf-8"
SUFFIXES = {"latex": "tex", "bibtex": "bib"}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TEXT = {"schema": {"type": "string"}}
_OTHERS = {
    "text/csv": _TEXT,
    "application/x-latex": _TEXT,
    "application/x-bibtex": _TEXT,
    _PARQUET: _BINARY,
}
_UNCHANGED = {"description": "as the ETag in If-None-Match says, nothing has changed"}
_DERIVED = 64
_PAGE, _LONGEST_PAGE = 100, 1000
_LARGEST = 2**31 - 1

Format = Annotated[
    Literal["json", "csv", "parquet", "latex", "bibtex"], Query(description="how the table is written")
]
BoardId = Annotated[str, Query(description="the board's id, such as `cirr/val`")]


async def known_query(request: Request) -> None:
    """Refuse a query parameter that a route does not have; the page of all routes takes any, as pages do.

    Raises:
        UploadRefusedError: `unknown-name`.
    """
    route = request.scope["route"]
    if route.path != "/api":
        known = [each.alias for each in route.dependant.query_params]
        known += [each["name"] for each in (route.openapi_extra or {}).get("parameters", ())]
        refuse_unknown(request.query_params, known, "query parameter")


def api_router(prefix: str) -> APIRouter:
    """A router of routes below a prefix; the OpenAPI document describes those with a version."""
    return APIRouter(
        prefix=prefix,
        include_in_schema=prefix != UNVERSIONED,
        responses=dict(FAILURES),
        dependencies=[Depends(known_query)],
    )


def root(server: Server) -> APIRouter:
    """What there is of the API as a whole."""
    pages, routes = Site(server), api_router("")

    @routes.get("/health", response_model=HealthAnswer)
    def health() -> dict[str, Any]:
        """Whether the server lives and its store answers."""
        return server.health()

    @routes.get("/api/", include_in_schema=False)
    def all_routes_with_a_slash() -> Response:
        """The same page: a slash behind an address is nobody's mistake."""
        return RedirectResponse("../api", 308)

    @routes.get("/api", include_in_schema=False)
    def all_routes(request: Request) -> Response:
        """The routes of the API, for people."""
        from leaderboard.pages import api_page

        page = api_page.page(request.app.openapi())
        html = pages.written(page, Links("api")).encode()
        return whole_answer(request, html, _HTML, {"Content-Security-Policy": PAGE_POLICY})

    return routes


def router(server: Server, prefix: str) -> APIRouter:
    """The routes that read."""
    routes = api_router(prefix)
    routes.responses[304] = _UNCHANGED

    @routes.get("/boards", response_model=BoardsAnswer)
    def list_boards(request: Request) -> Response:
        """All boards, without their rows."""
        counts = server.store.count_published()
        found = [
            board_view(
                board,
                counts.get(board.id, 0),
                server.settings.max_upload_bytes,
                server.tables.problem(board),
                server.store.paused(board.id),
            )
            for board in boards.boards()
        ]
        return whole_answer(request, orjson.dumps({"boards": found}), _JSON)

    @routes.get(
        "/boards/{board_id:path}",
        response_model=TableAnswer,
        responses={200: {"content": _OTHERS}},
    )
    def one_board(request: Request, board_id: str, format: Format = "json") -> Response:
        """A board and its rows, best first."""
        board = known_board(board_id)
        table = server.tables.of(board)
        if format == "json":
            return whole_answer(request, table.body, _JSON, etag=table.etag, packed=lambda: table.packed)
        suffix = SUFFIXES.get(format, format)
        headers = {"Content-Disposition": f'attachment; filename="{board.id.replace("/", "-")}.{suffix}"'}
        from leaderboard.web import formats

        site, address = server.settings.name, server.settings.url
        makers: dict[str, tuple[str, Callable[[], bytes]]] = {
            "csv": (_CSV, lambda: formats.as_csv(table.view)),
            "latex": (_LATEX, lambda: formats.as_latex(board, table.view)),
            "bibtex": (_BIBTEX, lambda: formats.as_bibtex(board, table.view, site, address)),
            "parquet": (_PARQUET, lambda: formats.as_parquet(table.view)),
        }
        kind, make = makers[format]
        return whole_answer(request, _derived(table, format, make), kind, headers)

    @routes.get("/entries", response_model=PageAnswer)
    def entries(
        request: Request,
        board: BoardId,
        after: Annotated[int, Query(ge=0, le=_LARGEST, description="`number` of the last entry seen")] = 0,
        limit: Annotated[int, Query(ge=1, le=_LONGEST_PAGE, description="entries on a page")] = _PAGE,
    ) -> Response:
        """A board's entries in the order in which they came onto it, page by page."""
        found = known_board(board)
        table = server.tables.of(found)
        place = bisect_right(table.by_number, after, key=itemgetter("number"))
        rows = table.by_number[place : place + limit]
        following = rows[-1]["number"] if place + limit < len(table.by_number) else None
        headers = {}
        if following is not None:
            query = urlencode({"board": found.id, "after": following, "limit": limit})
            headers["Link"] = f'<{VERSION}/entries?{query}>; rel="next"'
        page = {"board": found.id, "entries": rows, "next": following}
        body = _derived(table, (place, limit), lambda: orjson.dumps(page))

        def packed() -> bytes:
            return _derived(table, ("gzip", place, limit), lambda: gzip.compress(body, 6, mtime=0))

        return whole_answer(request, body, _JSON, headers, packed=packed)

    @routes.get(
        "/published",
        response_class=Response,
        responses={200: {"content": {"text/csv": _TEXT}}},
    )
    def published_rows(request: Request, board: BoardId) -> Response:
        """What papers and lists print for a board, as CSV: numbers as printed, with source and protocol."""
        from leaderboard.web import formats

        found = known_board(board)
        name = f"{found.id.replace('/', '-')}-published.csv"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return whole_answer(request, formats.as_published_csv(found), _CSV, headers)

    @routes.get(
        "/feed.atom",
        response_class=Response,
        responses={200: {"content": {"application/atom+xml": {"schema": {"type": "string"}}}}},
    )
    def feed(
        request: Request, board: Annotated[str | None, Query(description="a board's id; default: all")] = None
    ) -> Response:
        """What came onto a board, or onto all, lately: an Atom feed of 50 entries."""
        from leaderboard.web.feed import atom

        chosen = boards.boards() if board is None else (known_board(board),)
        query = "" if board is None else f"?{urlencode({'board': board})}"
        body = atom(
            [(one, server.tables.of(one).by_number) for one in chosen],
            title=server.settings.name if board is None else f"{chosen[0].title}, {server.settings.name}",
            name=server.settings.name,
            address=server.settings.url or str(request.base_url).rstrip("/"),
            own=f"{VERSION}/feed.atom{query}",
            key=public_pem(server.key.public_key()),
        )
        return whole_answer(request, body, "application/atom+xml; charset=utf-8")

    return routes


def _derived(table: KeptTable, what: Hashable, make: Callable[[], bytes]) -> bytes:
    """Something made of a table; made once, as long as not too much is asked for."""
    found: bytes | None = table.derived.get(what)
    if found is None:
        found = make()
        if len(table.derived) >= _DERIVED:
            table.derived.clear()
        table.derived[what] = found
    return found


def openapi_details() -> dict[str, Any]:
    """What the OpenAPI document says about the API as a whole."""
    return {
        "summary": "Boards of composed image retrieval: read them, and submit rank files.",
        "description": "Errors are JSON: `error` with `code`, `message` and `fix`. Values are fractions: "
        "0.59 here is 59.00 on the pages.",
    }


def whole_answer(
    request: Request,
    body: bytes,
    media_type: str,
    headers: Mapping[str, str] | None = None,
    status: int = 200,
    *,
    etag: str = "",
    packed: Callable[[], bytes] | None = None,
) -> Response:
    """An answer with an ETag; a request that names it gets 304.

    Args:
        request: what is answered.
        body: whole.
        media_type: of the body.
        headers: further ones.
        status: 304 is never sent in the place of an error.
        etag: of the body, where it is known.
        packed: gives the body by gzip, where it is kept so.
    """
    etag = etag or hashlib.sha256(body).hexdigest()[:40]
    # Weak: the same content goes out packed and unpacked.
    all_headers = {"ETag": f'W/"{etag}"', "Cache-Control": "no-cache", **(headers or {})}
    # RFC 9110, 13.1.2.
    named = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    if status == 200 and (f'"{etag}"' in named or named == ["*"]):
        return Response(status_code=304, headers=all_headers)
    if packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        body = packed()
        all_headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(body, status, media_type=media_type, headers=all_headers)
