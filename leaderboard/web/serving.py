"""Running the server in this process, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import uvicorn

from leaderboard.errors import ServeError
from leaderboard.web import logs
from leaderboard.web.options import WebOptions

if TYPE_CHECKING:
    from fastapi import FastAPI

_GRACE_SECONDS = 3
"""Open connections (pages that listen) are cut after so long when the server stops."""

_REST_SECONDS = 75
"""Connections without a request are closed after so long: nginx uses one again for 60 seconds."""


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""As glibc's `mallopt` calls them."""
_KEPT_BYTES, _LARGEST_KEPT = 64 << 20, 32 << 20


def serve(
    make_app: Callable[[], FastAPI], host: str, port: int, ready: Callable[[str], None], options: WebOptions
) -> None:
    """Serve until SIGINT or SIGTERM, then stop cleanly.

    Args:
        make_app: makes the application, after the port is ours.
        host: address to listen on.
        port: TCP port, 0 for any that is free.
        ready: called with the address once requests are answered.
        options: of the HTTP side.

    Raises:
        ServeError: the port is taken, or the address is not this machine's.
    """
    listener = _listen(host, port)
    shown_host = f"[{host}]" if ":" in host else host
    address = f"http://{shown_host}:{listener.getsockname()[1]}"
    logs.configure(options.logs)
    _keep_freed_memory()
    config = uvicorn.Config(
        make_app(),
        http="httptools",
        ws="none",
        timeout_keep_alive=_REST_SECONDS,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        server_header=False,
        proxy_headers=False,  # the application reads them, from the proxies that it is given
        lifespan="on",
    )
    with contextlib.closing(listener):
        _UvicornServer(config, lambda: ready(address)).run(sockets=[listener])


def _keep_freed_memory() -> None:
    """Let glibc keep what it frees: else each piece of an upload asks the kernel for new pages."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # another C library
            libc = ctypes.CDLL(None)
            libc.mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
            libc.mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)


class _UvicornServer(uvicorn.Server):
    """uvicorn, ending with exit code 0 when it is told to stop, and saying when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(logs.loop_error)
        await super().startup(sockets)
        if self.started:
            self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals and keep them: uvicorn would raise them again after the shut-down."""
        wanted = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in wanted}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once (TCP_NODELAY) only on sockets that say TCP; others wait 40 ms with each body.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise ServeError(
            f"cannot listen on {host}:{port}: {error.strerror or error}. "
            "Fix: stop what listens there, or choose another port with --port (0 takes any that is free)."
        ) from error
    return listener
