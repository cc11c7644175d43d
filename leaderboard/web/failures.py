"""Every answer of 400 and more that is not a page is JSON, `{"error": {"code", "message", "fix"}}`.

Browsers that send the plain form of `/submit` get such an answer as a page.
An unexpected error is logged once, under an id that the answer names; the answer says nothing else of it.
"""

from __future__ import annotations

import errno
import json
import logging
import secrets
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from sqlalchemy.exc import OperationalError
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.errors import SubmissionStoreError, UploadRefusedError
from leaderboard.pages.site import PAGE_POLICY
from leaderboard.web.answers import answer_instead, error_answer
from leaderboard.web.logs import place

log = logging.getLogger("leaderboard.web")

_BODY_BYTES = 64 * 1024
_TEXT_LENGTH = 300
_REPLACED = ("content-length", "content-type", "content-encoding")

_FULL = (errno.ENOSPC, errno.EDQUOT)
_BUSY = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_CODES = {404: "not-found", 405: "wrong-method", 413: "too-large", 422: "bad-request"}
_FIXES = {
    404: "see /api/boards for the boards",
    405: "use the method that the route is documented with",
    413: "send less; a rank file: as compact JSON, with no more images a query than the board uses",
}


class JsonErrors:
    """Gives every error its form.

    Args:
        app: what handles the request.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Remember it."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hold an error's answer back until it is complete, and what is raised with it is known."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False
        held: Message | None = None
        body = bytearray()

        async def sending(message: Message) -> None:
            nonlocal started, held
            if message["type"] == "http.response.start":
                started = True
                is_error = message["status"] >= HTTPStatus.BAD_REQUEST
                held = message if is_error and not _is_page(message) else None
            if held is None:
                await send(message)
            else:
                body.extend(message.get("body", b"")[: _BODY_BYTES - len(body)])

        answer: JSONResponse | None = None
        try:
            await self._app(scope, receive, sending)
        except ClientDisconnect:
            log.warning("%s: the client left before its body was complete", place(scope))
        except Exception as error:
            # The last place that can answer: the client gets JSON, the log gets the reason.
            answer = _passing(scope, error)
            if answer is None:
                number = secrets.token_hex(4)
                log.exception("%s: error %s", place(scope), number)
                fix = f"tell its organisers the id of this error: {number}"
                answer = error_answer(500, "internal-error", "the server failed.", fix)
        else:
            if held is not None:
                answer = _in_form(held, bytes(body))
        if answer is not None and (held is not None or not started):
            await answer(scope, receive, send)


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
        await answer_instead(self._app, scope, receive, send, _is_error, self._as_page)

    def _as_page(self, start: Message, body: bytes) -> HTMLResponse:
        said = json.loads(body)["error"]
        error = UploadRefusedError(said["code"], said["message"], fix=said["fix"], status=start["status"])
        headers = {"Content-Security-Policy": PAGE_POLICY, "Cache-Control": "private, no-store"}
        return HTMLResponse(self._page(error), error.status, headers)


def _is_error(start: Message) -> bool:
    kind = Headers(raw=start["headers"]).get("content-type", "")
    return start["status"] >= HTTPStatus.BAD_REQUEST and kind.startswith("application/json")


def _is_page(start: Message) -> bool:
    """Whether people read the answer: a page says itself what is wrong."""
    return Headers(raw=start["headers"]).get("content-type", "").startswith("text/html")


def _passing(scope: Scope, error: Exception) -> JSONResponse | None:
    """The answer to an error that may pass: a full disk, a locked database, no descriptors. Logs it."""
    if _is_full(error):
        log.error("%s: no space left: %s", place(scope), error)
        return error_answer(507, "no-space", "the server's disk is full.", "try again later")
    is_busy = isinstance(error, OSError) and error.errno in _BUSY
    if is_busy or isinstance(error, OperationalError | SubmissionStoreError):
        log.error("%s: not available: %s", place(scope), error)
        later = {"Retry-After": "10"}
        return error_answer(503, "unavailable", "the server cannot answer now.", "try again later", later)
    return None


def _is_full(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
            return True
        error = error.__cause__
    return False


def _in_form(start: Message, body: bytes) -> JSONResponse:
    """An error's answer in our form; one that has it already stays as it is."""
    status = start["status"]
    found = _parsed(body)
    headers = Headers(raw=start["headers"])
    kept = {name: value for name, value in headers.items() if name not in _REPLACED}
    if isinstance(found, dict) and {"code", "message", "fix"} <= _keys(found.get("error")):
        return JSONResponse(found, status, kept)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return error_answer(status, "unavailable", "the server cannot answer now.", "try again later", kept)
    detail = found.get("detail") if isinstance(found, dict) else found
    if isinstance(detail, list) and detail and isinstance(detail[0], dict):
        where = ".".join(str(part) for part in detail[0].get("loc", ()))
        detail = f"{where}: {detail[0].get('msg', '')}"
    if not isinstance(detail, str):
        detail = body.decode("utf-8", "replace") if found is None else HTTPStatus(status).phrase
    code = _CODES.get(status, "bad-request")
    fix = _FIXES.get(status, "correct the request and send it again")
    return error_answer(status, code, detail[:_TEXT_LENGTH], fix, kept)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _keys(found: Any) -> set[str]:
    return set(found) if isinstance(found, dict) else set()
