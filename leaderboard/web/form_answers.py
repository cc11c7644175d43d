"""What the plain form of `/submit` is answered with where the server refuses it: a page, not JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.errors import UploadRefusedError
from leaderboard.pages.site import PAGE_POLICY


class FormAnswers:
    """Writes errors of one route as pages for browsers.

    Args:
        app: what handles the request.
        path: of the route, with `/` in front.
        page: the page of a refusal, HTML.
    """

    def __init__(self, app: ASGIApp, path: str, page: Callable[[UploadRefusedError], str]) -> None:
        """Remember them."""
        self._app = app
        self._path = path
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hold an error's JSON back, and answer with its words."""
        is_form = scope["type"] == "http" and (scope["method"], scope["path"]) == ("POST", self._path)
        if not is_form or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        body = bytearray()

        async def held(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_error(message):
                start = message
            elif start is None:
                await send(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body"):
                    await self._as_page(start["status"], bytes(body))(scope, receive, send)

        await self._app(scope, receive, held)

    def _as_page(self, status: int, body: bytes) -> HTMLResponse:
        said = json.loads(body)["error"]
        error = UploadRefusedError(said["code"], said["message"], fix=said["fix"], status=status)
        headers = {"Content-Security-Policy": PAGE_POLICY, "Cache-Control": "private, no-store"}
        return HTMLResponse(self._page(error), status, headers)


def _is_error(start: Message) -> bool:
    kind = Headers(raw=start["headers"]).get("content-type", "")
    return start["status"] >= HTTPStatus.BAD_REQUEST and kind.startswith("application/json")
