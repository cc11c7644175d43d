"""The application: FastAPI with the API, and the Gradio pages mounted on it.

The pages load nothing from elsewhere (fonts, scripts, analytics): a leaderboard works without a network.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import gradio as gr
from fastapi import FastAPI
from fastapi.responses import Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cir_metrics.signature import package_version
from leaderboard import api, settings
from leaderboard.errors import ServeError
from leaderboard.pages import about_page, boards_page, layout, submit_page
from leaderboard.server import Server
from leaderboard.settings import Settings

_CACHE_SECONDS = 3600
"""Gradio's copies of uploaded files are removed after so long; ours are in the store."""

_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
    )
)
"""Gradio's templates need inline scripts and eval; what this policy stops is every load from elsewhere."""


def create_app(home: Path | None = None, *, chosen: Settings | None = None) -> FastAPI:
    """The leaderboard as an ASGI application; its worker runs between start-up and shut-down.

    Args:
        home: folder of its state; None takes `CIR_LEADERBOARD_HOME` or the user's data folder.
        chosen: all settings at once, instead of `home` and the environment.

    Raises:
        SubmissionStoreError: the home cannot be used.
    """
    # Gradio asks for this whenever it is about to report; nothing is reported from here.
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    server = Server.open(chosen or settings.read(home))

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        server.worker.start()
        yield
        server.close()

    app = FastAPI(
        title="CIR leaderboard",
        version=package_version(),
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
    )
    app.add_middleware(SecurityHeaders)
    api.add_routes(app, server)

    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        return Response(layout.icon(), media_type="image/svg+xml")

    with warnings.catch_warnings():
        # Said even where server-side rendering is switched off.
        warnings.filterwarnings("ignore", message="SSR mode is not supported")
        mounted: FastAPI = gr.mount_gradio_app(
            app,
            pages(server),
            path="/",
            theme=layout.theme(),
            css=layout.css(),
            footer_links=[],
            run_history=False,
            ssr_mode=False,
            pwa=False,
            mcp_server=False,
            show_error=False,
            max_file_size=server.settings.max_upload_bytes,
        )
    return mounted


def pages(server: Server) -> Any:
    """All pages as one Gradio Blocks."""
    demo = gr.Blocks(
        title="CIR leaderboard",
        analytics_enabled=False,
        delete_cache=(_CACHE_SECONDS, _CACHE_SECONDS),
        fill_width=True,
    )
    boards_page.build(demo, server)
    submit_page.build(demo, server)
    about_page.build(demo, server)
    shut_out_strangers(demo)
    return demo


class SecurityHeaders:
    """Adds headers that keep a page to this server, whatever gets into it.

    Args:
        app: what handles the request.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Remember the application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers to every HTTP answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", _POLICY)
                headers.setdefault("X-Content-Type-Options", "nosniff")
                headers.setdefault("Referrer-Policy", "same-origin")
            await send(message)

        await self._app(scope, receive, with_headers)


_DOWNLOADERS = ("async_ssrf_protected_download", "ssrf_protected_download", "save_url_to_cache")


def shut_out_strangers(demo: Any) -> None:
    """Let the pages' components take uploaded files only.

    Args:
        demo: the pages' Blocks, complete.

    Raises:
        ServeError: this version of Gradio lacks what is switched here, so that nothing would be protected.
    """
    missing = [name for name in _DOWNLOADERS if not hasattr(gr.processing_utils, name)]
    if missing or not hasattr(demo, "has_launched"):
        raise ServeError(
            f"Gradio {gr.__version__} has no {', '.join(missing) or 'has_launched'}, so that its pages would "
            "read files of this machine for strangers. Fix: install the version of Gradio in constraints.txt."
        )
    demo.has_launched = True
    for name in _DOWNLOADERS:
        setattr(gr.processing_utils, name, _refuse)


def _refuse(address: str, *_: Any, **__: Any) -> NoReturn:
    raise gr.exceptions.InvalidPathError(f"{address[:200]!r} is an address; only uploaded files are taken.")
