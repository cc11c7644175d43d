"""An end to what a server may take, however slowly its bytes trickle in.

The time-outs of httpx hold for one read each: a server that sends a byte now and then is waited for without
end. A deadline holds for everything between two moments.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx


class Deadline:
    """So many seconds, counted from `with`; what is still read from a server then ends in an error.

    Give `watch` to a client of httpx that keeps no connections alive, as a hook of its requests, and ask
    `passed` where an error came, or an end without one.

    Args:
        seconds: above 0.

    Example:
        >>> with Deadline(60) as deadline:
        ...     deadline.passed
        False
    """

    def __init__(self, seconds: float) -> None:
        """See the class."""
        self.seconds = seconds
        self._over = False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return self._over

    def __enter__(self) -> Deadline:
        """Start the clock."""
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self._timer.cancel()
        with self._lock:
            for connection in self._sockets:
                connection.close()
            self._sockets.clear()

    def watch(self, request: httpx.Request) -> None:
        """Have the connection that a request is sent on end in time."""
        request.extensions["trace"] = self._note

    def _note(self, event: str, info: Mapping[str, Any]) -> None:
        """Note each connection as it is made: httpx calls this with what happens to a request."""
        if event.endswith(".connect_tcp.complete"):
            made = info["return_value"].get_extra_info("socket")
            with self._lock:
                # A copy: TLS takes the socket itself over. Shutting down either ends the connection.
                self._sockets.append(made.dup())
            if self._over:
                self._end()

    def _end(self) -> None:
        with self._lock:
            self._over = True
            for connection in self._sockets:
                with contextlib.suppress(OSError):  # closed by the other side already
                    connection.shutdown(socket.SHUT_RDWR)
