"""Answers that cost little: each has an ETag, a request that names it gets 304; what is read is packed."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping

from fastapi import Request
from fastapi.responses import Response
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from leaderboard.pages.addresses import FIRST_PARTS

_LEAST = 1000
_LEVEL = 5
_READ = frozenset((*FIRST_PARTS, "api", "s", "site", "submit"))
"""What the paths of answers that are read begin with, before their first slash."""
_NOT = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/vnd.apache.parquet")


def whole_answer(
    request: Request,
    body: bytes,
    media_type: str,
    headers: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    """An answer that is made anew each time; a middleware packs it.

    Args:
        request: what is answered.
        body: unpacked.
        media_type: of the body.
        headers: further ones.
        status: 304 is never sent in the place of an error.
    """
    etag = etag_of(body)
    all_headers = {**_headers(etag), **(headers or {})}
    if status == 200 and _has(request, etag):
        return Response(status_code=304, headers=all_headers)
    return Response(body, status, media_type=media_type, headers=all_headers)


def packed_answer(
    request: Request, etag: str, packed: bytes, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    """What is kept by gzip; it is unpacked for the few clients that do not take it so.

    Args:
        request: what is answered.
        etag: names the content.
        packed: the body by gzip.
        media_type: of the body.
        headers: further ones.
    """
    all_headers = {**_headers(etag), **(headers or {})}
    if _has(request, etag):
        return Response(status_code=304, headers=all_headers)
    # As Starlette reads it, which packs what is not kept packed.
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, media_type=media_type, headers={**all_headers, "Content-Encoding": "gzip"})
    return Response(gzip.decompress(packed), media_type=media_type, headers=all_headers)


def etag_of(body: bytes) -> str:
    """Forty hexadecimal digits that name a content."""
    return hashlib.sha256(body).hexdigest()[:40]


def _headers(etag: str) -> dict[str, str]:
    # Weak: the same content goes out packed and unpacked.
    return {"ETag": f'W/"{etag}"', "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}


def _has(request: Request, etag: str) -> bool:
    """Whether the client says that it has this content (RFC 9110, 13.1.2)."""
    named = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    return f'"{etag}"' in named or named == ["*"]


class Packed:
    """Packs what is read: the API, the pages and their files.

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
        packs = path.split("/")[1] in _READ and not path.endswith("/file")
        await (self._packing if packs else self._app)(scope, receive, send)
