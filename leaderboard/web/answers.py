"""What is read, with its ETag, in a file of its own: API and pages answer so."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response


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
