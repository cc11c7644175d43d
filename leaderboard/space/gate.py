"""The gate before Gradio's own addresses: its app opens whatever file or web address a request names."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Container
from pathlib import Path
from typing import Any

from fastapi.concurrency import run_in_threadpool
from gradio.utils import get_upload_folder
from starlette.datastructures import Headers
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.errors import UploadRefusedError
from leaderboard.server import Server
from leaderboard.web.options import JSON_BYTES
from leaderboard.web.origins import is_from_here

_API = "/gradio_api/"
_STRAY_SECONDS = 3600
_JOIN, _UPLOAD = f"{_API}queue/join", f"{_API}upload"
_USED = re.compile(f"{_JOIN}|{_UPLOAD}|{_API}(queue/data|upload_progress|heartbeat/[^/]+|startup-events)")
"""What the pages ask for. Of the rest, some serve files, or fetch any web address for anybody."""


class Gate:
    """Lets through what the pages use; no file that was not uploaded, and no more uploads than an hour has.

    Args:
        app: Gradio's.
        server: the leaderboard.
        uploaded: paths of the files that came in through the page.
    """

    def __init__(self, app: ASGIApp, server: Server, uploaded: Container[str]) -> None:
        """Put the limits on bodies before it."""
        self._app, self._quotas, self._uploaded = app, server.quotas, uploaded
        self._most = server.settings.max_upload_bytes + JSON_BYTES
        self._large = RequestBodyLimitMiddleware(app, self._most)
        self._small = RequestBodyLimitMiddleware(self._looked_into, JSON_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Choose by the path."""
        path = scope["path"]
        if path.startswith(_API) and not is_from_here(Headers(scope=scope)):
            # Gradio lets any site's page ask with the visitor's cookies.
            await PlainTextResponse("A page of another site may not ask this.", 403)(scope, receive, send)
        elif path.startswith(_API) and not _USED.fullmatch(path):
            await PlainTextResponse("There is no such address.", 404)(scope, receive, send)
        elif path != _UPLOAD:
            await self._small(scope, receive, send)
        else:
            request = Request(scope)
            size = min(int(request.headers.get("content-length", self._most)), self._most)
            # Apart from the files that are sent, so that a file counts once in each.
            address = f"looked at: {request.client.host if request.client else ''}"
            try:
                await run_in_threadpool(self._quotas.count, address, size)
                await run_in_threadpool(_sweep)
            except UploadRefusedError as error:
                await PlainTextResponse(str(error), error.status)(scope, receive, send)
            else:
                await self._large(scope, receive, send)

    async def _looked_into(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != _JOIN:
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        try:
            json.loads(body, object_pairs_hook=self._check)
        except (ValueError, RecursionError):
            words = "The file was not uploaded here, or is here no longer. Fix: choose it again."
            await PlainTextResponse(words, 422)(scope, receive, send)
            return
        ready: list[Message] = [{"type": "http.request", "body": body}]

        async def again() -> Message:
            return ready.pop() if ready else await receive()

        await self._app(scope, again, send)

    def _check(self, pairs: list[tuple[str, Any]]) -> None:
        """Refuse an object that names a file: Gradio takes each that has a `path` for one."""
        for name, value in pairs:
            if name == "path" and (str(value) not in self._uploaded or not Path(str(value)).is_file()):
                raise ValueError


def _sweep() -> None:
    """Remove what uploads that broke off left behind: Gradio forgets these."""
    for stray in Path(get_upload_folder()).glob("tmp*"):
        if stray.is_file() and time.time() - stray.stat().st_mtime > _STRAY_SECONDS:
            stray.unlink(missing_ok=True)
