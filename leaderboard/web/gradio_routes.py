"""The routes of Gradio that the page /submit needs, and what it may say to them.

A file of its own, for they change with Gradio's version. Gradio calls an uploaded file by its path on this
machine, and answers a call that its page would not make with a traceback in the log. Outside, an upload is
called by its path below the folder of uploads; a call that is malformed, or names any other file, is refused
before Gradio reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.errors import UploadRefusedError
from leaderboard.web.answers import answer_instead

UPLOAD, JOIN = "/gradio_api/upload", "/gradio_api/queue/join"

_READ = re.compile(
    r"/assets/[\w.-]+"
    r"|/static/js/iframeResizer\.contentWindow\.min\.js"
    r"|/theme\.css"
    # `app_id` is what a page asks for until a server that was restarted answers.
    r"|/gradio_api/(?:queue/data|upload_progress|app_id)"
)
_WRITTEN = (JOIN, UPLOAD)
_OUTSIDE = "uploads/"


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


class PageCalls:
    """Translates names of uploads, and lets calls of the page's functions through.

    Args:
        app: Gradio's application.
        folder: of uploads.
        functions: by the number of a function how many values it takes.
    """

    def __init__(self, app: ASGIApp, folder: Path, functions: Mapping[int, int]) -> None:
        """Remember them."""
        self._app = app
        self._folder = folder.resolve()
        self._functions = dict(functions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take apart what is said to and by the two routes; all others go through."""
        route = (scope["method"], scope["path"]) if scope["type"] == "http" else None
        if route == ("POST", UPLOAD):
            await answer_instead(self._app, scope, receive, send, _is_taken, self._renamed)
        elif route == ("POST", JOIN):
            await self._called(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _renamed(self, start: Message, body: bytes) -> Response:
        """The answer to an upload, with names in the place of paths."""
        said = json.dumps([self._outside(path) for path in json.loads(body)])
        answer = Response(said)
        kept = [(name, value) for name, value in start["headers"] if name != b"content-length"]
        answer.raw_headers = [*kept, (b"content-length", str(len(answer.body)).encode())]
        return answer

    async def _called(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A call with paths in the place of names.

        Raises:
            UploadRefusedError: the page would not send it.
        """
        call = self._checked(await Request(scope, receive).body())
        for value in call["data"]:
            if isinstance(value, dict):
                value["path"] = str(self._inside(value.get("path")))
        body, sent = json.dumps(call).encode(), False

        async def again() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        headers = MutableHeaders(raw=list(scope["headers"]))
        headers["content-length"] = str(len(body))
        await self._app({**scope, "headers": headers.raw}, again, send)

    def _checked(self, body: bytes) -> dict[str, Any]:
        try:
            call = json.loads(body)
        except ValueError:
            call = None
        number = call.get("fn_index") if isinstance(call, dict) else None
        takes = self._functions.get(number) if type(number) is int else None
        data = call.get("data") if isinstance(call, dict) else None
        if takes is None or not isinstance(data, list) or len(data) != takes:
            raise _refused("the page /submit does not send such a call.")
        if not isinstance(call.get("session_hash"), str):
            raise _refused("session_hash is not a text.")
        if not all(value is None or isinstance(value, str | dict) for value in data):
            raise _refused("data holds something else than texts and files.")
        return dict(call)

    def _outside(self, path: str) -> str:
        return _OUTSIDE + Path(path).resolve().relative_to(self._folder).as_posix()

    def _inside(self, name: object) -> Path:
        """The file behind a name.

        Raises:
            UploadRefusedError: it is not one of an upload.
        """
        if isinstance(name, str) and name.startswith(_OUTSIDE) and "\0" not in name:
            path = (self._folder / name.removeprefix(_OUTSIDE)).resolve()
            if path.is_relative_to(self._folder) and path.is_file():
                return path
        raise UploadRefusedError(
            "unknown-upload",
            f"{str(name)[:80]!r} is not a file that was uploaded here, or it is not kept any more.",
            fix="choose the file again",
            status=404,
        )


def _refused(message: str) -> UploadRefusedError:
    fix = "send files to /api/v1/submissions, which is made for programs"
    return UploadRefusedError("bad-request", message, fix=fix, status=422)


def _is_taken(start: Message) -> bool:
    return bool(start["status"] == HTTPStatus.OK)
