"""Gradio's page inside the layout of all pages: its scripts and its element are taken out and put there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.errors import ServeError
from leaderboard.web.kept_answers import whole_answer

_HEAD = re.compile(r"<script>window\.gradio_config = .*?(?=</head>)", re.DOTALL)
_MANIFEST = re.compile(r"<link rel=\"manifest\"[^>]*>")
_APPLICATION = re.compile(r"<gradio-app\b.*?</gradio-app>", re.DOTALL)
_TITLE = 'control_page_title="true"'


class InLayout:
    """Answers one path of Gradio's with its parts in a page of ours.

    Args:
        app: Gradio's application.
        path: of its page, with `/` in front.
        page: makes the whole page of the request, what belongs into its head, and Gradio's element.
        headers: further ones of the answer.
    """

    def __init__(
        self,
        app: ASGIApp,
        path: str,
        page: Callable[[Request, str, str], str],
        headers: Mapping[str, str],
    ) -> None:
        """Remember them."""
        self._app = app
        self._path = path
        self._page = page
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the answer to GET of that path apart; all others go through."""
        if scope["type"] != "http" or (scope["method"], scope["path"]) != ("GET", self._path):
            await self._app(scope, receive, send)
            return
        start: Message = {}
        body = bytearray()

        async def keep(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body":
                body.extend(message.get("body", b""))

        await self._app(scope, receive, keep)
        if start["status"] != 200:
            response: Response = Response(bytes(body), start["status"])
            response.raw_headers = list(start["headers"])
        else:
            html = self._page(Request(scope), *parts_of(body.decode()))
            response = whole_answer(Request(scope), html.encode(), "text/html; charset=utf-8", self._headers)
        await response(scope, receive, send)


def parts_of(html: str) -> tuple[str, str]:
    """What Gradio needs in a page's head, and the element in which it draws.

    Args:
        html: its own page.

    Raises:
        ServeError: it is not such a page.
    """
    head, application = _HEAD.search(html), _APPLICATION.search(html)
    if head is None or application is None or _TITLE not in application[0]:
        raise ServeError(
            "Gradio's page is not written as expected. Fix: install the version of Gradio in constraints.txt."
        )
    return _MANIFEST.sub("", head[0]), application[0].replace(_TITLE, 'control_page_title="false"')
