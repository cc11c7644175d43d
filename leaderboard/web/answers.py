"""Answers: errors in the form of the API, what is read with its ETag, one answer in the place of another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Instead = Callable[[Message, bytes], ASGIApp]
"""From the start of an answer and its whole body to what answers instead."""


def error_answer(
    status: int, code: str, message: str, fix: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """The answer `{"error": {"code", "message", "fix"}}`.

    Args:
        status: HTTP status, 400 or more.
        code: a word that programs may rely on.
        message: what is wrong.
        fix: what the client can do.
        headers: further ones.

    Example:
        >>> error_answer(404, "not-found", "Not Found", "see /api/boards").body
        b'{"error":{"code":"not-found","message":"Not Found","fix":"see /api/boards"}}'
    """
    return JSONResponse({"error": {"code": code, "message": message, "fix": fix}}, status, headers)


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


async def answer_instead(
    app: ASGIApp,
    scope: Scope,
    receive: Receive,
    send: Send,
    held: Callable[[Message], bool],
    instead: Instead,
) -> None:
    """Let an app answer; an answer that is held is given to `instead`, any other goes through as it is.

    Args:
        app: what handles the request.
        scope: of the request.
        receive: its body.
        send: takes the answer.
        held: whether to hold an answer, from its start.
        instead: what answers in its place.
    """
    start: Message | None = None
    body = bytearray()

    async def taken(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start" and held(message):
            start = message
        elif start is None:
            await send(message)
        else:
            body.extend(message.get("body", b""))
            if not message.get("more_body"):
                await instead(start, bytes(body))(scope, receive, send)

    await app(scope, receive, taken)
