"""The Space as one application: Gradio's pages at its root, the server's full pages and API below."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import gradio as gr
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
from starlette.middleware import Middleware
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from cir_datasets.pages import part
from leaderboard import settings
from leaderboard.settings import Settings
from leaderboard.space import shown
from leaderboard.space.gate import Gate
from leaderboard.space.pages import Pages
from leaderboard.web import options
from leaderboard.web.app import create_app
from leaderboard.web.options import WebOptions
from leaderboard.web.serving import serve

_AT_ROOT = ("/health", "/api", "/api/{rest:path}", "/login/{rest:path}", "/logout")
"""What programs and the provider of logins find where a server without this app has it."""
_HUB = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "fc00::/7", "::1"]
"""Networks of no sender: a Space sees the Hub's proxies at such addresses."""
_FONTS = ("system-ui", "Segoe UI", "Roboto", "Arial", "sans-serif")


class _Below:
    """Hands requests on as a proxy does that serves the app below a path; a route takes no function."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app, self._path = app, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, raw = scope["path"].removeprefix(self._path), scope.get("raw_path", b"")
        raw = raw.removeprefix(self._path.encode()) or b"/"
        inside = {**scope, "path": path or "/", "raw_path": raw, "root_path": ""}
        inside.pop("router", None)  # by it the application finds its own addresses
        await self._app(inside, receive, send)


def create_space(chosen: Settings, web: WebOptions, workers: int = 1) -> FastAPI:
    """The whole application.

    Args:
        chosen: the server's settings.
        web: of the HTTP side.
        workers: worker processes to keep running.
    """
    inner = create_app(chosen=chosen, options=web, workers=workers)
    pages, demo = FastAPI(openapi_url=None), Pages(inner.state.server).demo
    demo.has_launched = True  # a mounted app leaves it False, and then checks no path
    gr.mount_gradio_app(
        pages,
        demo,
        path="/",
        theme=gr.themes.Base(primary_hue="teal", neutral_hue="slate", font=_FONTS),
        css=part("query.css"),
        css_paths=Path(__file__).with_name("templates") / "space.css",
        footer_links=[],
        ssr_mode=False,
        mcp_server=False,
        pwa=False,
        show_error=False,
        enable_monitoring=False,
        max_file_size=chosen.max_upload_bytes,
    )
    if chosen.accounts == "oauth":
        from starlette.middleware.sessions import SessionMiddleware

        from leaderboard.web.login import session_options

        pages.add_middleware(SessionMiddleware, **session_options())

    full = f"/{shown.FULL}"

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with inner.router.lifespan_context(inner), pages.router.lifespan_context(pages):
            yield

    async def below(request: Request) -> RedirectResponse:
        """The page that a program names by its address on a server without this app."""
        return RedirectResponse(request.url.replace(scheme="", netloc="", path=f"{full}{request.url.path}"))

    return FastAPI(
        routes=[
            # Where signing in and out ends.
            Route("/submit", RedirectResponse(".?view=submit", 303)),
            *(Route(path, below) for path in ("/b/{rest:path}", "/s/{rest:path}")),
            *(Route(path, _Below(inner, "")) for path in _AT_ROOT),
            Mount(full, _Below(inner, full)),
            Route(full, RedirectResponse(f"{shown.FULL}/")),
            Mount("/", Gate(pages, inner.state.server, demo.upload_file_set)),
        ],
        lifespan=lifespan,
        openapi_url=None,
        # The only way into a Space is the Hub's proxy: the last address that is not the Hub's own.
        middleware=[Middleware(ProxyHeadersMiddleware, trusted_hosts=_HUB)] if settings.in_space() else [],
    )


def run(host: str, port: int, say: Callable[[str], Any]) -> None:
    """Serve the Space until it is told to stop.

    Args:
        host: address to listen on.
        port: TCP port, 0 for any that is free.
        say: takes what is told to whoever starts it.

    Raises:
        CirError: a setting is wrong, or the port is taken.
    """
    chosen, web = settings.read(), options.read()
    if settings.in_space() and not settings.lasts(os.environ):
        say("WARNING: entries end with the next restart; set CIR_LEADERBOARD_LOG and HF_TOKEN.")
    started = f"Leaderboard on {{}} (Ctrl-C stops it). State: {chosen.home}".format
    serve(lambda: create_space(chosen, web), host, port, lambda address: say(started(address)), web)
