"""The routes of the reading pages: `leaderboard.pages.addresses` says which address has which page."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import orjson
from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from cir_metrics.errors import UnknownNameError
from leaderboard.errors import UploadRefusedError
from leaderboard.intake.destination import HEAD_BYTES
from leaderboard.pages import site
from leaderboard.pages.addresses import FIRST_PARTS, page_at
from leaderboard.pages.site import PAGE_POLICY, SUBMIT_PATH, Links, Page, Site, missing_page
from leaderboard.server import Server
from leaderboard.server.callers import Sender, as_whom, caller_of, readable, sender_of
from leaderboard.settings import Durability
from leaderboard.standings.views import entry_page
from leaderboard.standings.views import submission_page as address_of
from leaderboard.store.submission import Submission
from leaderboard.web.api import is_form, taken_in, upload_bytes
from leaderboard.web.reading import whole_answer

_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}
_OWN = {"Cache-Control": "private, no-store", "Vary": "Accept-Encoding, Authorization, Cookie, X-Edit-Key"}


def router(server: Server) -> APIRouter:
    """The routes."""
    routes = APIRouter(include_in_schema=False)
    pages = Site(server)
    no_file = missing_page("Not found", "There is no such file.")

    def answer(request: Request, path: str, page: Page, more: Mapping[str, str] | None = None) -> Response:
        if page.data is not None and request.query_params.get("format") == "json":
            return whole_answer(request, orjson.dumps(page.data), "application/json", status=page.status)
        html = pages.written(page, Links(path))
        headers = {"Content-Security-Policy": page.policy, **(more or {})}
        return whole_answer(request, html.encode(), "text/html; charset=utf-8", headers, page.status)

    @routes.get("/submission")
    def submission(request: Request) -> Response:
        """The address of submissions in earlier versions; a browser keeps the key behind its #."""
        return RedirectResponse(f".{address_of(request.query_params.get('id', ''))}", 307)

    @routes.get("/s/{submission_id}")
    def one_submission(request: Request, submission_id: str) -> Response:
        """A submission, as whoever asks may see it: the one page that is not the same for everybody."""
        from leaderboard.pages import submission_page

        path = f"s/{quote(submission_id, safe='')}"
        try:
            caller = caller_of(request, server)
            found = readable(server, caller, submission_id)
        except UploadRefusedError as error:
            return answer(request, path, submission_page.closed_page(error, submission_id), _OWN)
        by, with_key = as_whom(server, caller, found), bool(caller.edit_key)
        again = "again" in request.query_params and by is not None
        page = submission_page.page(pages, found, by, with_key=with_key, again=again)
        return answer(request, path, page, _OWN)

    @routes.get(f"/{SUBMIT_PATH}")
    def form(request: Request) -> Response:
        """The form of a file; where people sign in, it says who has."""
        from leaderboard.pages import submit_page

        own = _OWN if server.settings.accounts == "oauth" else {}
        return answer(request, SUBMIT_PATH, submit_page.page(server, request), own)

    @routes.post(f"/{SUBMIT_PATH}/look")
    async def look(request: Request) -> Response:
        """Where a file would be checked, by its first bytes: a part of the page, for its script."""
        from leaderboard.pages import submit_page

        asked, head = request.query_params, await request.body()
        named = (asked.get("board", ""), head[:HEAD_BYTES], asked.get("name", ""))
        html = await run_in_threadpool(submit_page.named_html, server, request, *named)
        return HTMLResponse(html, headers={"Content-Security-Policy": PAGE_POLICY, **_OWN})

    @routes.post(f"/{SUBMIT_PATH}", max_body_size=upload_bytes(server))
    async def take(request: Request) -> Response:
        """Take the file in, and go on to the submission's page; `ErrorAnswers` writes refusals as pages."""
        from leaderboard.pages import submit_page

        by_script = request.headers.get("x-requested-with") == "XMLHttpRequest"
        if not is_form(request):
            raise UploadRefusedError.of("missing-file/page")

        def taken(one: Submission, sender: Sender, new: bool, safe: Durability) -> Response:
            address = f".{address_of(one.id, sender.edit_key)}" if new else f".{address_of(one.id)}?again"
            if by_script:
                return JSONResponse({"page": address}, 201, _OWN)
            return RedirectResponse(address, 303)

        as_sender = sender_of if by_script else submit_page.sender_without_scripts
        return await taken_in(request, server, as_sender, taken, name_after_file=True)

    @routes.get("/site/{name}")
    def file(request: Request, name: str) -> Response:
        """A style sheet, script or icon of the pages."""
        path = f"site/{name}"
        if path not in site.assets():
            return answer(request, path, no_file)
        body, media_type = site.asset(path)
        return Response(body, media_type=media_type, headers=_FOR_EVER)

    @routes.get("/site/pictures/of/{benchmark:path}/{image}.jpg")
    def hosted(request: Request, benchmark: str, image: str) -> Response:
        """A picture of the host's folders, small."""
        from leaderboard.pages import pictures

        try:
            body = pictures.hosted_picture(pages, benchmark, image)
        except UnknownNameError:
            return answer(request, f"site/pictures/of/{quote(benchmark)}/{quote(image)}.jpg", no_file)
        return Response(body, media_type=pictures.HOSTED_TYPE, headers={"Cache-Control": "max-age=3600"})

    @routes.get("/site/pictures/{rest:path}")
    def picture(request: Request, rest: str) -> Response:
        """A picture that the package draws; its address changes with the benchmark's version."""
        from leaderboard.pages import pictures

        try:
            body = pictures.picture(f"site/pictures/{rest}")
        except UnknownNameError:
            return answer(request, f"site/pictures/{quote(rest)}", no_file)
        return Response(body, media_type=pictures.MEDIA_TYPE, headers=_FOR_EVER)

    def page(request: Request) -> Response:
        """A page. Addresses of earlier versions, `/?board=...&entry=...`, go on."""
        path, asked = _path(request), request.query_params
        if not path and asked.get("board"):
            return RedirectResponse(f".{entry_page(asked['board'], asked.get('entry'))}", 307)
        whole, _, after = path.rpartition("/")
        if whole and not after and not whole.endswith("/"):
            # Relative: a proxy may serve the site below a path of its own.
            behind = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"../{whole.rpartition('/')[2]}{behind}", 308)
        query = {name: ",".join(asked.getlist(name)) for name in asked}
        return answer(request, path, page_at(pages, path, query))

    routes.add_api_route(f"/{SUBMIT_PATH}/", page)
    for first in FIRST_PARTS:
        routes.add_api_route(f"/{first}", page)
        if first:
            routes.add_api_route(f"/{first}/{{rest:path}}", page)
    return routes


def _path(request: Request) -> str:
    """The path as it was asked for, percent-encoded: an id may hold a slash of its own."""
    raw = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
    return raw.decode("ascii", "replace").removeprefix("/")
