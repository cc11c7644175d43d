"""What the body of a request may cost, on every route: bytes, parts of a form, and time.

Starlette's `RequestBodyLimitMiddleware` counts bytes as well, but only of a body that is read, and knows no
time. Here a body is counted while it comes in, `Content-Length` before that; what comes too slowly is
refused; a connection whose body was not taken to its end is closed after the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from starlette.datastructures import Headers, MutableHeaders
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.web.answers import error_answer
from leaderboard.web.forms import SCOPE_KEY, FormLimits, FormRefusedError, FormWatch
from leaderboard.web.logs import place

log = logging.getLogger("leaderboard.web")

JSON_BYTES = 64 * 1024
"""Bytes of a body that is not an upload. A value of JSON costs up to 30 times its bytes once it is read."""

_GRACE_SECONDS = 5.0
_BYTES_PER_SECOND = 8 * 1024
_LINGER_SECONDS = 2.0
_LINGER_BYTES = 32 * 2**20
"""What is still read, and thrown away, after an early answer: a client that is cut off may not see it."""


_NO_FILES = FormLimits(files=0, texts=20)


@dataclass(frozen=True)
class BodyLimit:
    """What a route takes.

    Args:
        size: bytes of the body.
        form: parts of a form.
    """

    size: int = JSON_BYTES
    form: FormLimits = _NO_FILES


@dataclass(frozen=True)
class Patience:
    """How fast a body must come. Only time spent waiting for the sender counts.

    Args:
        seconds: for the whole body.
        grace: seconds before the rate counts.
        rate: bytes a second, on average since the beginning.
    """

    seconds: float
    grace: float = _GRACE_SECONDS
    rate: float = _BYTES_PER_SECOND

    def left(self, seen: int) -> float:
        """Seconds that may have been waited for the sender of so many bytes.

        Example:
            >>> patience = Patience(seconds=60, grace=5, rate=1000)
            >>> patience.left(0), patience.left(20_000), patience.left(10**9)
            (5, 20.0, 60)
        """
        return min(self.seconds, max(self.grace, seen / self.rate))


class BodyEndedError(ClientDisconnect, MultiPartException):
    """The body ends here, for the handler: its sender is gone, or was refused.

    Both kinds at once, because handlers and parsers of forms clean up after the one or the other.
    """


class Bodies:
    """Keeps bodies within their limits.

    Args:
        app: what handles the request.
        limits: by method and path; other routes have `BodyLimit()`.
        patience: how fast a body must come.
    """

    def __init__(self, app: ASGIApp, limits: Mapping[tuple[str, str], BodyLimit], patience: Patience) -> None:
        """Remember them."""
        self._app = app
        self._limits = limits
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, and what it sends for as long as it keeps within the limits."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limits.get((scope["method"], scope["path"]), BodyLimit())
        body = _Body(scope, receive, send, limit, self._patience)
        with contextlib.suppress(BodyEndedError):
            body.check_headers()
            await self._app(scope, body.receive, body.send)
        await body.finish()


class _Body:
    """The body of one request, and the end of its answer."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, limit: BodyLimit, patience: Patience
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._limit = limit
        self._patience = patience
        self._headers = Headers(scope=scope)
        self._complete = self._headers.get("content-length", "0") == "0" and (
            "transfer-encoding" not in self._headers
        )
        self._watch: FormWatch | None = None
        self._seen = 0
        self._waited = 0.0
        self._gone = False
        self._started = False
        self._refusal: JSONResponse | None = None

    def check_headers(self) -> None:
        said = self._headers.get("content-length", "0")
        if said.isdecimal() and int(said) > self._limit.size:
            self._too_large()
        content_type = self._headers.get("content-type", "")
        if not self._complete and content_type.lower().startswith("multipart/form-data"):
            try:
                self._watch = self._scope[SCOPE_KEY] = FormWatch(content_type, self._limit.form)
            except FormRefusedError as error:
                self._bad_form(error)

    async def receive(self) -> Message:
        if self._refusal is not None or self._gone:
            raise BodyEndedError("the body has ended")
        if self._complete:
            return await self._receive()
        message = await self._awaited()
        if message["type"] == "http.disconnect":
            if not self._started:
                log.warning("%s: the client left before its body was complete", place(self._scope))
            self._gone = True
            raise BodyEndedError("the client is gone")
        chunk = message.get("body", b"")
        self._seen += len(chunk)
        if self._seen > self._limit.size:
            self._too_large()
        if self._watch is not None:
            try:
                self._watch.feed(chunk)
            except FormRefusedError as error:
                self._bad_form(error)
        self._complete = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if self._refusal is None and not self._gone:
            await self._answer(message)

    async def finish(self) -> None:
        if self._refusal is not None and not self._started:
            await self._refusal(self._scope, self._receive, self._answer)

    async def _awaited(self) -> Message:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._patience.left(self._seen) - self._waited):
                message = await self._receive()
        except TimeoutError:
            self._refuse(
                408,
                "too-slow",
                f"the body came too slowly: {self._seen:,} bytes in {self._waited + clock() - began:.0f} s.",
                f"send {self._patience.rate:,.0f} bytes a second, and all in {self._patience.seconds:.0f} s",
            )
        self._waited += clock() - began
        return message

    async def _answer(self, message: Message) -> None:
        """Send a part of the answer; the last part of an early answer waits a little for the sender."""
        if message["type"] == "http.response.start":
            self._started = True
            if not self._complete:
                MutableHeaders(scope=message)["Connection"] = "close"
        elif not self._complete and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._linger()
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    async def _linger(self) -> None:
        left = _LINGER_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                while left > 0:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return

    def _too_large(self) -> NoReturn:
        self._refuse(
            413,
            "too-large",
            f"the body has more than {self._limit.size:,} bytes, the limit of this route.",
            "send less; a rank file: as compact JSON, with no more images a query than the board uses",
        )

    def _bad_form(self, error: FormRefusedError) -> NoReturn:
        self._refuse(
            400, "bad-form", f"{error}.", "send one file, in the field that the route is documented with"
        )

    def _refuse(self, status: int, code: str, message: str, fix: str) -> NoReturn:
        self._refusal = error_answer(status, code, message, fix)
        raise BodyEndedError(message)
