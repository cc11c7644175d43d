"""The routes of the reading pages: each finds what is asked for, and hands it to the page's own module."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.errors import UploadRefusedError
from leaderboard.pages import board_page, home_page, pictures, site
from leaderboard.pages.site import Links, Page, Site, missing_page
from leaderboard.server import Server
from leaderboard.views import entry_page, submission_page
from leaderboard.web.headers import PAGE_POLICY
from leaderboard.web.kept_answers import whole_answer

_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}
_HTML = "text/html; charset=utf-8"


def router(server: Server) -> APIRouter:
    """The routes."""
    routes = APIRouter(include_in_schema=False)
    pages = Site(server)

    def answer(request: Request, path: str, make: Callable[[], Page]) -> Response:
        try:
            page = make()
        except UnknownNameError as error:
            page = missing_page("Not found", str(error))
        except UploadRefusedError as error:
            page = missing_page("Not found", f"There is {error.message}", f"Fix: {error.fix}.")
        html = pages.written(page, Links(path))
        headers = {"Content-Security-Policy": PAGE_POLICY}
        return whole_answer(request, html.encode(), _HTML, headers, page.status)

    @routes.get("/")
    def home(request: Request) -> Response:
        """All boards. Addresses of earlier versions, `/?board=...&entry=...`, go on."""
        asked = request.query_params.get("board")
        if asked:
            return RedirectResponse(f".{entry_page(asked, request.query_params.get('entry'))}", 307)
        return answer(request, "", lambda: home_page.page(pages))

    @routes.get("/submission")
    def submission(request: Request) -> Response:
        """The address of submissions in earlier versions; a browser keeps the key behind its #."""
        return RedirectResponse(f".{submission_page(request.query_params.get('id', ''))}", 307)

    @routes.get("/b/{rest:path}")
    def board(request: Request, rest: str) -> Response:
        """A board."""
        query = dict(request.query_params)
        return answer(request, f"b/{rest}", lambda: board_page.page(pages, boards.board(rest), query))

    @routes.get("/site/{name}")
    def file(name: str) -> Response:
        """A style sheet, script or icon of the pages."""
        path = f"site/{name}"
        if path not in site.assets():
            return answer_missing()
        body, media_type = site.asset(path)
        return Response(body, media_type=media_type, headers=_FOR_EVER)

    @routes.get("/site/pictures/{rest:path}")
    def picture(rest: str) -> Response:
        """A picture that the package draws; its address changes with the benchmark's version."""
        try:
            body = pictures.picture(f"site/pictures/{rest}")
        except UnknownNameError:
            return answer_missing()
        return Response(body, media_type=pictures.MEDIA_TYPE, headers=_FOR_EVER)

    def answer_missing() -> Response:
        html = pages.written(missing_page("Not found", "There is no such file."), Links("site/"))
        return Response(html, 404, media_type=_HTML, headers={"Content-Security-Policy": PAGE_POLICY})

    return routes
