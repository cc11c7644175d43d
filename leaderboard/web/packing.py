"""Answers by gzip, in a file of its own: what is not to be packed is read alone."""

from __future__ import annotations

from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

_LEAST = 1000
_LEVEL = 5
_READ = (
    "/api",
    "/about",
    "/b/",
    "/compare",
    "/e/",
    "/m",
    "/published",
    "/s/",
    "/site/",
    "/status",
    "/submit",
    "/suite/",
)
_NOT = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/vnd.apache.parquet")


class Packed:
    """Packs what is read: the API, the reading pages and their files. Gradio's answers are streams.

    Args:
        app: what handles the request.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Put Starlette's middleware before it."""
        self._app = app
        self._packing = GZipMiddleware(app, _LEAST, _LEVEL, exclude_content_types=_NOT)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Choose by path and method."""
        path = scope["path"] if scope["type"] == "http" and scope["method"] == "GET" else "/file"
        packs = (path == "/" or path.startswith(_READ)) and not path.endswith("/file")
        await (self._packing if packs else self._app)(scope, receive, send)
