"""The routes of Gradio that the page /submit needs; a file of its own, for they change with its version."""

from __future__ import annotations

import re
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

UPLOAD, JOIN = "/gradio_api/upload", "/gradio_api/queue/join"

_READ = re.compile(
    r"/assets/[\w.-]+"
    r"|/static/js/iframeResizer\.contentWindow\.min\.js"
    r"|/theme\.css"
    # `app_id` is what a page asks for until a server that was restarted answers.
    r"|/gradio_api/(?:queue/data|upload_progress|app_id)"
)
_WRITTEN = (JOIN, UPLOAD)


class PagesOnly:
    """Lets requests through that the pages send, found by driving them in a browser.

    Not there: the API beside the pages (`call`, `run`, `info`, `mcp`), `proxy`, `file` (which would hand the
    uploads of others to anybody), `component_server`, `stream`, `config`, `login`, `monitoring`, ...

    Args:
        app: Gradio's application.
        pages: paths of the pages, with `/` in front.
        missing: answers a browser that asks for a page that there is not.
    """

    def __init__(self, app: ASGIApp, pages: Collection[str], missing: ASGIApp) -> None:
        """Remember them."""
        self._app = app
        self._pages = frozenset(pages)
        self._missing = missing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 404 to every other request."""
        if scope["type"] == "lifespan" or self._is_needed(scope):
            await self._app(scope, receive, send)
            return
        if scope.get("method") == "GET" and "text/html" in Headers(scope=scope).get("accept", ""):
            await self._missing(scope, receive, send)
            return
        raise HTTPException(404)

    def _is_needed(self, scope: Scope) -> bool:
        path, method = scope["path"], scope.get("method")
        if method == "POST":
            return path in _WRITTEN
        return method in ("GET", "HEAD") and (path in self._pages or _READ.fullmatch(path) is not None)
