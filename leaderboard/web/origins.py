"""Who may ask: which names this server answers to, from where it takes writes, who else may read or frame it.

Starlette's `TrustedHostMiddleware` does not know the address at which a connection arrived, and its plain
"Invalid host header" does not say how to allow a name; its `CORSMiddleware` is used as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.errors import UploadRefusedError
from leaderboard.pages.site import COCO_POLICY, FRAMED_POLICY, PAGE_POLICY

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")
_HOST_FIX = (
    "use the address it is served on; who runs it allows another name with "
    "--allowed-host or CIR_LEADERBOARD_HOSTS"
)
_FORWARDED = "x-forwarded-for"
_READING = ("GET", "HEAD", "OPTIONS")
_FROM_HERE = ("same-origin", "none")


class KnownHosts:
    """Refuses a request that names a host other than this one: a page elsewhere may have led a browser here.

    Known are the names given, and the address at which the connection arrived.

    Args:
        app: what handles the request.
        names: host names without ports, in small letters.
        fix: what who asks by another name can do.
    """

    def __init__(self, app: ASGIApp, names: Collection[str], fix: str = _HOST_FIX) -> None:
        """Remember them."""
        self._app = app
        self._names = frozenset(names)
        self._fix = fix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check `Host`."""
        if scope["type"] == "http":
            host = Headers(scope=scope).get("host", "")
            arrived = scope.get("server") or ("",)
            if host_name(host) not in {*self._names, str(arrived[0]).lower()} - {""}:
                message = f"this server does not answer to the host {host[:100]!r}."
                raise UploadRefusedError("unknown-host", message, fix=self._fix)
        await self._app(scope, receive, send)


class LastForwarded:
    """Leaves of `X-Forwarded-For` the address that the proxy itself has seen, which is the last one.

    Those before it were in the request as it came: a sender writes any. Behind it, uvicorn's
    `ProxyHeadersMiddleware` reads the header where the connection is one of the proxy's.

    Args:
        app: what handles the request.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Remember it."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Cut the header."""
        if scope["type"] == "http":
            headers = MutableHeaders(raw=list(scope["headers"]))
            said = headers.getlist(_FORWARDED)
            if said:
                headers[_FORWARDED] = said[-1].rpartition(",")[2].strip()
            scope = {**scope, "headers": headers.raw}
        await self._app(scope, receive, send)


class SameOrigin:
    """Refuses a write that a page of another site sends; programs, which name no origin, pass.

    Args:
        app: what handles the request.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Remember it."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check `Origin` and `Sec-Fetch-Site` of a write."""
        writes = scope["type"] == "http" and scope["method"] not in _READING
        if writes and not is_from_here(Headers(scope=scope)):
            raise UploadRefusedError.of("cross-origin")
        await self._app(scope, receive, send)


class ReadableFromAnywhere:
    """Lets pages of other sites read `/health` and below `/api/`, without credentials; nothing else.

    Args:
        app: what handles the request.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Put Starlette's CORS before it."""
        self._app = app
        self._readable = CORSMiddleware(
            app,
            allow_origins=["*"],
            allow_methods=["GET", "HEAD"],
            allow_headers=["If-None-Match"],
            expose_headers=["ETag", "Link", "Retry-After"],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Choose by path and method."""
        public = scope["type"] == "http" and is_api(scope["path"]) and scope["method"] in _READING
        await (self._readable if public else self._app)(scope, receive, send)


class HeadAsGet:
    """Answers HEAD as GET is answered, without the body (RFC 9110, 9.3.2); FastAPI does not.

    Args:
        app: what handles the request.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Remember it."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Ask for what GET gives, and leave its body out."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET"}, receive, sending)


def is_api(path: str) -> bool:
    """Whether a path is the API's, not a page's."""
    return path in ("/health", "/api") or path.startswith("/api/")


def host_name(host: str) -> str:
    """The name in a `Host` header or an address's authority, in small letters; empty where it is malformed.

    Example:
        >>> host_name("Localhost:7860"), host_name("[::1]:80"), host_name("a@b"), host_name("")
        ('localhost', '::1', '', '')
    """
    found = _HOST.fullmatch(host)
    return found["name"].strip("[]").lower() if found else ""


def is_from_here(headers: Headers) -> bool:
    """Whether no page of another site asks, as a browser says in `Origin` and `Sec-Fetch-Site`."""
    if headers.get("sec-fetch-site", "none") not in _FROM_HERE:
        return False
    origin = headers.get("origin")
    return origin is None or origin.lower().partition("://")[2] == headers.get("host", "").lower()


class SecurityHeaders:
    """Adds the headers that keep a page to this server, and replaces what the application says itself.

    Args:
        app: what handles the request.
        framed_by: who may show the pages in a frame, as the policy writes it.
        policy: what is said where an answer says none of these policies.
    """

    def __init__(self, app: ASGIApp, framed_by: str = "'self'", policy: str = PAGE_POLICY) -> None:
        """Put them together once."""
        self._app = app
        page_policies = (policy, PAGE_POLICY, COCO_POLICY)
        self._policies = {own: f"{own}; frame-ancestors {framed_by}" for own in page_policies}
        self._policies[FRAMED_POLICY] = f"{FRAMED_POLICY}; frame-ancestors *"
        self._policy = policy
        self._headers = {
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers to every HTTP answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                said = headers.get("content-security-policy", "")
                headers.update(self._headers)
                # An answer may say a stricter policy of these, and nothing else.
                headers["Content-Security-Policy"] = self._policies.get(said, self._policies[self._policy])
            await send(message)

        await self._app(scope, receive, with_headers)
