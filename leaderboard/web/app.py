"""The application: FastAPI with API and pages, and their guards.

The pages load nothing from elsewhere (fonts, scripts, analytics): a leaderboard works without a network.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from cir_metrics.catalogue import package_version
from leaderboard import settings
from leaderboard.errors import UploadRefusedError
from leaderboard.pages.site import ICON, NO_PAGE, SUBMIT_PATH, Links, Site, asset
from leaderboard.queue.processes import WorkerProcesses
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.web import api, site_routes
from leaderboard.web.failures import RAISED, ErrorAnswers
from leaderboard.web.options import JSON_BYTES, WebOptions
from leaderboard.web.origins import (
    HeadAsGet,
    KnownHosts,
    LastForwarded,
    ReadableFromAnywhere,
    SameOrigin,
    SecurityHeaders,
    is_api,
)
from leaderboard.web.reading import openapi_details

_NOT_PACKED = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/vnd.apache.parquet")
_SWEEP_SECONDS = 600


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
    server = Server.open(chosen or settings.read(home), leads=True)
    stopped = threading.Event()

    async def sweeping() -> None:
        while True:
            await run_in_threadpool(server.look_over, stopped)
            await asyncio.sleep(_SWEEP_SECONDS)

    processes = WorkerProcesses(server.settings.home, workers, lambda: server.store.reads_only)

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
        exception_handlers=RAISED,
    )
    app.state.server = server  # for who mounts it: the Space
    routers = [*api.routers(server), site_routes.router(server)]
    for router in routers:
        app.include_router(router)
    if server.settings.accounts == "oauth":
        from leaderboard.web.login import add_login

        add_login(app, server)

    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        body, media_type = asset(ICON)
        return Response(body, media_type=media_type)

    site = Site(server)

    async def missing(scope: Scope, receive: Receive, send: Send) -> None:
        """A page for browsers that ask for what is not there; others get the error in JSON."""
        routes = (*app.routes, *(route for router in routers for route in router.routes))
        if methods := _methods_of(scope, routes):
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(methods))})
        reads = scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", "")
        if not reads or is_api(scope["path"]):
            raise HTTPException(404)
        html = site.written(NO_PAGE, Links(quote(scope["path"].lstrip("/"))))
        answer = HTMLResponse(html, 404, headers={"Content-Security-Policy": NO_PAGE.policy})
        await answer(scope, receive, send)

    app.mount("/", missing)
    return app


def _methods_of(scope: Scope, routes: Iterable[BaseRoute]) -> set[str]:
    """The methods of those routes that have a request's path."""
    there = [route for route in routes if isinstance(route, Route)]
    found = [route.methods or () for route in there if route.matches(scope)[0] is Match.PARTIAL]
    methods = {name for each in found for name in each}
    return methods | {"HEAD"} if "GET" in methods else methods


def guards(options: WebOptions, server: Server) -> list[Middleware]:
    """What a request passes on its way in, the outermost first.

    Args:
        options: of the HTTP side.
        server: the leaderboard.
    """
    site = Site(server)

    def refused(error: UploadRefusedError) -> str:
        from leaderboard.pages import submit_page

        return site.written(submit_page.refused_page(error), Links(SUBMIT_PATH))

    proxy = [
        Middleware(LastForwarded),
        Middleware(ProxyHeadersMiddleware, trusted_hosts=list(options.proxies)),
    ]
    return [
        # A proxy packs answers, too.
        *(proxy if options.proxies else (Middleware(GZipMiddleware, exclude_content_types=_NOT_PACKED),)),
        Middleware(SecurityHeaders, framed_by=options.framed_by),
        Middleware(HeadAsGet),
        Middleware(ReadableFromAnywhere),
        Middleware(ErrorAnswers, path=f"/{SUBMIT_PATH}", page=refused),
        Middleware(KnownHosts, names=options.hosts),
        Middleware(SameOrigin),
        # Innermost: who may not send at all is told so, however much they send. Uploads have more, where
        # their routes say so.
        Middleware(RequestBodyLimitMiddleware, max_body_size=JSON_BYTES),
    ]
