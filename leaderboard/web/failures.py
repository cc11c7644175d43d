"""What goes wrong, in one form: JSON, `{"error": {"code", "message", "fix"}}`, or a page.

A page is for browsers that send the plain form of `/submit`. An unexpected error is logged once, under an id
that the answer names; the answer says nothing else of it.
"""

from __future__ import annotations

import errno
import logging
import secrets
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import OperationalError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.errors import (
    ConflictError,
    FileStoreError,
    LostFileError,
    UploadRefusedError,
    is_passing,
    refuse_unknown,
)
from leaderboard.pages.site import PAGE_POLICY

log = logging.getLogger("leaderboard.web")

_PATH_LENGTH = 120
_TEXT_LENGTH = 300
_LATER = {"Retry-After": "10"}

_FULL = (errno.ENOSPC, errno.EDQUOT)


async def _for_error_answers(_request: Request, error: Exception) -> Response:
    raise error


RAISED: dict[Any, Any] = {HTTPException: _for_error_answers, RequestValidationError: _for_error_answers}
"""Handlers of an application behind `ErrorAnswers`: FastAPI would answer these errors itself."""


class ErrorAnswers:
    """Answers what an application raises.

    Args:
        app: what handles the request.
        path: of the form whose errors browsers get as pages.
        page: such a page, HTML.
    """

    def __init__(
        self, app: ASGIApp, path: str = "", page: Callable[[UploadRefusedError], str] | None = None
    ) -> None:
        """Remember them."""
        self._app, self._path, self._page = app, path, page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for an error; Starlette's own plain texts are answered anew."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = replaced = False

        async def sending(message: Message) -> None:
            nonlocal started, replaced
            if message["type"] == "http.response.start":
                started = True
                replaced = _is_plain_error(message)
                if replaced:
                    said = _of_http(HTTPException(message["status"]))
                    await self._answer(scope, said, {})(scope, receive, send)
            if not replaced:
                await send(message)

        try:
            await self._app(scope, receive, sending)
        except ClientDisconnect:
            log.warning("%s: the client left before its body was complete", _place(scope))
        except Exception as error:
            # The last place that can answer: the client gets an answer, the log gets the reason.
            said = _refusal(scope, error)
            if said is None:
                number = secrets.token_hex(4)
                log.exception("%s: error %s", _place(scope), number)
                said = UploadRefusedError.of("internal-error", number=number)
            more = _LATER if said.code == "unavailable" else getattr(error, "headers", None) or {}
            if not started:
                await self._answer(scope, said, more)(scope, receive, send)

    def _answer(self, scope: Scope, error: UploadRefusedError, headers: Mapping[str, str]) -> Response:
        is_form = self._page is not None and (scope["method"], scope["path"]) == ("POST", self._path)
        if self._page is None or not is_form or "text/html" not in Headers(scope=scope).get("accept", ""):
            return JSONResponse({"error": error.to_dict()}, error.status, headers)
        own = {"Content-Security-Policy": PAGE_POLICY, "Cache-Control": "private, no-store"}
        return HTMLResponse(self._page(error), error.status, {**headers, **own})


def _refusal(scope: Scope, error: Exception) -> UploadRefusedError | None:
    """What is said of an error, or None of an unexpected one; what is for the organisers alone is logged.

    Args:
        scope: of the request.
        error: as it was raised.
    """
    if isinstance(error, UploadRefusedError):
        return error
    if isinstance(error, RequestValidationError):
        return _invalid(scope, error.errors())
    if isinstance(error, HTTPException):
        return _of_http(error)
    refusal = _known(error)
    if refusal is not None:
        log.error("%s: %s: %s", _place(scope), refusal.code, error)
        refusal.status = getattr(error, "status", refusal.status)
    return refusal


def _of_http(error: HTTPException) -> UploadRefusedError:
    refusal = UploadRefusedError.of(
        {404: "not-found", 405: "wrong-method", 413: "too-large/body"}.get(error.status_code, "bad-request"),
        detail=error.detail[:_TEXT_LENGTH],
    )
    refusal.status = error.status_code
    return refusal


def _known(error: Exception) -> UploadRefusedError | None:
    """What is said of an error that may pass, or whose reason is for the organisers alone."""
    if isinstance(error, ConflictError):
        return UploadRefusedError.of("conflict")
    if isinstance(error, FileStoreError | LostFileError):
        return UploadRefusedError.of("files-unavailable")
    if _is_full(error):
        return UploadRefusedError.of("no-space")
    passes = isinstance(error, OperationalError) or is_passing(error)
    return UploadRefusedError.of("unavailable") if passes else None


def _is_plain_error(start: Message) -> bool:
    kind = Headers(raw=start["headers"]).get("content-type", "")
    return start["status"] >= HTTPStatus.BAD_REQUEST and kind.startswith("text/plain")


def _is_full(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
            return True
        error = error.__cause__
    return False


def _invalid(scope: Scope, faults: Any) -> UploadRefusedError:
    """What FastAPI finds of a request; of an unknown field of an action, which fields there are."""
    from leaderboard.web.schemas import fields_of

    for fault in faults:
        if fault["type"] == "extra_forbidden":
            try:
                refuse_unknown([str(fault["loc"][-1])], fields_of(scope["path"].rpartition("/")[2]), "field")
            except UploadRefusedError as refused:
                return refused
    where = ".".join(str(part) for part in faults[0]["loc"])
    return UploadRefusedError.of("bad-request", detail=f"{where}: {faults[0]['msg']}"[:_TEXT_LENGTH])


def _place(scope: Scope) -> str:
    """Method and path of a request, for a log; never the query, which may hold a token."""
    return f"{scope['method'][:10]} {scope['path'][:_PATH_LENGTH]}"
