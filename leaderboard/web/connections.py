"""Connections: how many there are, how long one may rest, and which goes when there are too many.

uvicorn's `limit_concurrency` answers 503 to a request, and never ends a connection that sends none; nothing
limits the time until a request's headers are complete. Strangers could hold every descriptor.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from leaderboard.web.answers import error_answer

log = logging.getLogger("leaderboard.web")

BACKLOG = 128
"""Connections that the system keeps until they are accepted; as many may be accepted at once."""

_OTHERS = 128
"""Descriptors kept free for everything else: database, files, judging."""

_ENOUGH = 65_536
_FEWEST = 16

_REST_SECONDS = 10
"""Without a request, or with one whose headers are not complete, a connection is closed after so long."""

_STALL_SECONDS = 60
"""A client that takes nothing of its answer for so long is cut off."""


def raise_descriptors() -> int:
    """Take as many descriptors as this process may have, and say how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _ENOUGH if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def most_connections(wanted: int, descriptors: int) -> int:
    """How many connections are served at once.

    Example:
        >>> most_connections(1000, 20_000), most_connections(1000, 1024), most_connections(1000, 64)
        (1000, 768, 16)
    """
    return max(_FEWEST, min(wanted, descriptors - BACKLOG - _OTHERS))


class Connection(H11Protocol):
    """A connection of uvicorn's, with limits.

    `limit_concurrency` of the configuration is the number of connections. One more takes the place of the one
    that has rested longest; where none rests, it is answered 503. How many one
    address may have is for the proxy in front to say.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Take the limit over: uvicorn's own check would count resting connections against a request."""
        super().__init__(*arguments, **named)
        self._most = self.limit_concurrency or _ENOUGH
        self.limit_concurrency = None
        self._rest: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self.rests_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to rest, or make room."""
        super().connection_made(transport)
        self._look()
        if len(self.connections) > self._most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """See whether a request has begun."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """See whether another request has come already."""
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the clocks."""
        super().connection_lost(exc)
        self._stop("_rest")
        self._stop("_stall")

    def pause_writing(self) -> None:
        """The client takes nothing: begin to wait."""
        super().pause_writing()
        self._stall = self._stall or self.loop.call_later(_STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client goes on."""
        super().resume_writing()
        self._stop("_stall")

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP in JSON, too."""
        self._end(400, "bad-request", msg, "send HTTP/1.1 with headers of at most 64 kB")

    def _look(self) -> None:
        """Note whether the connection rests; a clock runs while it does."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop("_rest")
            self.rests_since = None
        elif self.rests_since is None:
            self.rests_since = self.loop.time()
            self._rest = self.loop.call_later(_REST_SECONDS, self._rested)

    def _rested(self) -> None:
        if self.transport.is_closing():
            return
        if self.conn.trailing_data[0]:
            self._end(408, "too-slow", "the request's headers came too slowly.", "send them at once")
        else:
            self.transport.close()

    def _make_room(self) -> None:
        """End the longest rest, where there are too many."""
        others = [one for one in self.connections if isinstance(one, Connection) and one is not self]
        others = [one for one in others if not one.transport.is_closing()]
        if len(others) < self._most:
            return
        resting = [(one.rests_since, one) for one in others if one.rests_since is not None]
        if resting:
            log.warning("%d connections: the one that rested longest is closed", len(others))
            min(resting, key=lambda pair: pair[0])[1].transport.close()
        else:
            log.warning("%d connections, all of them busy: another one is answered 503", len(others))
            self._end(503, "too-many-connections", "too many connections are open.", "try again later")

    def _end(self, status: int, code: str, message: str, fix: str) -> None:
        """Answer without the application, and close."""
        answer = error_answer(status, code, message, fix, {"Connection": "close"})
        lines = [
            f"HTTP/1.1 {status} ".encode(),
            *(name + b": " + value for name, value in answer.raw_headers),
        ]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(answer.body)]))
        self.transport.close()

    def _stop(self, clock: str) -> None:
        running = getattr(self, clock)
        if running is not None:
            running.cancel()
            setattr(self, clock, None)
