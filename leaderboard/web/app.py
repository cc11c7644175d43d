"""The application: FastAPI with API and reading pages, Gradio's pages mounted on it, and their guards.

The pages load nothing from elsewhere (fonts, scripts, analytics): a leaderboard works without a network.
"""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, urlsplit

import gradio as gr
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, Response
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from cir_metrics.catalogue import package_version
from leaderboard import settings
from leaderboard.errors import ServeError, UploadRefusedError
from leaderboard.pages import submit_page
from leaderboard.pages.site import ICON, NO_PAGE, Links, Site, asset
from leaderboard.queue.processes import WorkerProcesses
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.web import api, gradio_routes, site_routes
from leaderboard.web.bodies import Bodies, BodyLimit, Patience
from leaderboard.web.failures import FormAnswers, JsonErrors
from leaderboard.web.forms import FormLimits
from leaderboard.web.gradio_layout import InLayout
from leaderboard.web.gradio_routes import PageCalls, PagesOnly
from leaderboard.web.headers import SecurityHeaders
from leaderboard.web.kept_answers import Packed
from leaderboard.web.options import WebOptions
from leaderboard.web.origins import HeadAsGet, KnownHosts, LastForwarded, ReadableFromAnywhere, SameOrigin
from leaderboard.web.page_uploads import RoomForUploads, UploadFolder
from leaderboard.web.reading import openapi_details

_SWEEP_SECONDS = 600
_WAITING = 64
"""Clicks on a page that wait for their turn; Gradio keeps what each sent."""


def create_app(
    home: Path | None = None,
    *,
    chosen: Settings | None = None,
    options: WebOptions | None = None,
    workers: int = 1,
) -> FastAPI:
    """The leaderboard as an ASGI application; its workers run between start-up and shut-down.

    Args:
        home: folder of its state; None takes `CIR_LEADERBOARD_HOME` or the user's data folder.
        chosen: all settings at once, instead of `home` and the environment.
        options: of the HTTP side; None takes the defaults.
        workers: worker processes to keep running; 0 where they run elsewhere.

    Raises:
        SubmissionStoreError: the home cannot be used.
    """
    options = options or WebOptions()
    # Gradio asks for this whenever it is about to report; nothing is reported from here.
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    server = Server.open(chosen or settings.read(home))
    folder = server.settings.home / "page_uploads"
    # Read when the pages are made.
    os.environ["GRADIO_TEMP_DIR"] = str(folder)
    uploads = UploadFolder(folder, options.page_uploads_bytes)

    stopped = threading.Event()

    async def sweeping() -> None:
        while True:
            await run_in_threadpool(server.look_over, stopped)
            await asyncio.sleep(_SWEEP_SECONDS)
            await run_in_threadpool(uploads.sweep)

    processes = WorkerProcesses(server.settings.home, workers)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        processes.start()
        if server.preparing is not None:
            server.preparing.start()
        sweeper = asyncio.create_task(sweeping())
        yield
        stopped.set()
        sweeper.cancel()
        await run_in_threadpool(processes.stop)
        server.close()

    app = FastAPI(
        title="CIR leaderboard",
        version=package_version(),
        **openapi_details(),
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
        middleware=guards(options, server),
    )
    api.add_routes(app, server)
    app.include_router(site_routes.router(server))
    if server.settings.accounts == "oauth":
        from leaderboard.web.login import add_login

        add_login(app, server)

    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        body, media_type = asset(ICON)
        return Response(body, media_type=media_type)

    mount_pages(app, server, uploads)
    return app


def guards(options: WebOptions, server: Server) -> list[Middleware]:
    """What a request passes on its way in, the outermost first.

    Args:
        options: of the HTTP side.
        server: the leaderboard.
    """
    size = server.settings.max_upload_bytes + api.FORM_OVERHEAD
    site = Site(server)

    def refused(error: UploadRefusedError) -> str:
        return site.written(submit_page.refused_page(error), Links(submit_page.PATH))

    limits = {
        **{
            ("POST", path): BodyLimit(size, FormLimits(files=1, texts=api.FIELDS))
            for path in (api.UPLOAD_PATH, api.V1_UPLOAD_PATH, f"/{submit_page.PATH}")
        },
        ("POST", gradio_routes.UPLOAD): BodyLimit(size, FormLimits(files=1, texts=0)),
    }
    proxy = [
        Middleware(LastForwarded),
        Middleware(ProxyHeadersMiddleware, trusted_hosts=list(options.proxies)),
    ]
    return [
        *(proxy if options.proxies else ()),
        Middleware(SecurityHeaders, framed_by=options.framed_by),
        Middleware(HeadAsGet),
        Middleware(FormAnswers, path=f"/{submit_page.PATH}", page=refused),
        Middleware(Bodies, limits=limits, patience=Patience(options.upload_seconds)),
        Middleware(Packed),
        Middleware(JsonErrors),
        Middleware(KnownHosts, names=options.hosts),
        Middleware(ReadableFromAnywhere),
        Middleware(SameOrigin),
    ]


def mount_pages(app: FastAPI, server: Server, uploads: UploadFolder) -> None:
    """Put the pages onto the application, with those routes of Gradio that they need."""
    demo = pages(server)
    with warnings.catch_warnings():
        # Said even where server-side rendering is switched off.
        warnings.filterwarnings("ignore", message="SSR mode is not supported")
        gr.mount_gradio_app(
            app,
            demo,
            path="/",
            theme=submit_page.theme(),
            css=submit_page.css(),
            footer_links=[],
            run_history=False,
            ssr_mode=False,
            pwa=False,
            mcp_server=False,
            show_error=False,
            max_file_size=server.settings.max_upload_bytes,
            # Below a path Gradio's addresses need it; all others are relative.
            root_path=urlsplit(server.settings.url).path.rstrip("/") or None,
        )
    mount = app.router.routes[-1]
    if not isinstance(mount, Mount):
        raise ServeError(
            f"Gradio {gr.__version__} does not mount its pages as expected: all its routes would be open. "
            "Fix: install the version of Gradio in constraints.txt."
        )
    largest = server.settings.max_upload_bytes + api.FORM_OVERHEAD
    functions = {number: len(one.inputs) for number, one in demo.fns.items()}
    calls = PageCalls(mount.app, uploads.folder, functions)
    guarded = RoomForUploads(calls, uploads, largest)
    site = Site(server)

    async def missing(scope: Scope, receive: Receive, send: Send) -> None:
        html = site.written(NO_PAGE, Links(quote(scope["path"].lstrip("/"))))
        answer = HTMLResponse(html, 404, headers={"Content-Security-Policy": NO_PAGE.policy})
        await answer(scope, receive, send)

    needed = PagesOnly(guarded, [f"/{page[0]}" for page in demo.pages if page[0]], missing)

    def whole(request: Request, head: str, application: str) -> str:
        page = submit_page.page(server, request, head, application)
        return site.written(page, Links(submit_page.PATH))

    # Where people sign in, the page says who has.
    own = {"Cache-Control": "private, no-store"} if server.settings.accounts == "oauth" else {}
    mount.app = InLayout(needed, f"/{submit_page.PATH}", whole, own)


def pages(server: Server) -> Any:
    """All pages as one Gradio Blocks."""
    demo = gr.Blocks(
        title="CIR leaderboard",
        analytics_enabled=False,
        fill_width=True,
    )
    submit_page.build(demo, server)
    demo.queue(max_size=_WAITING)
    shut_out_strangers(demo)
    return demo


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
