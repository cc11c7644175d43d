"""The one HTTP client of the suite: an answer ends in time, fits the memory, and is the asked server's own.

Time-outs of httpx hold for one read each, and its memory is the server's to fill: a byte now and then, or a
megabyte of gzip, would keep a command for ever. Its redirects take headers and bodies anywhere.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

import httpx
import orjson

from cir_datasets.common.addresses import check_proxies
from cir_datasets.errors import HttpAnswerError, LateAnswerError

_HOPS = 10
_SLOWEST = 2**17
"""Bytes a second that an upload is granted beside the seconds for its answer."""

_PACKINGS = ("", "gzip", "deflate")
"""How a body may be packed: unpacked, a piece of it grows by a factor of about 1,000 at most."""

_PUBLIC = ("accept", "accept-encoding", "connection", "host", "user-agent")
"""Headers that any server may see."""


class Deadline:
    """So many seconds, counted from `with`; what is still read from a server then ends in an error.

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

    def note(self, event: str, info: Mapping[str, Any]) -> None:
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


class BoundedClient(httpx.Client):
    """A client whose answers are bounded; each request has a connection of its own, which its deadline ends.

    A redirect within the origin (scheme, host and port) is followed. One that leaves it is followed only
    where the request has neither a body nor a key, or by `sheds_key` without its key.

    Args:
        seconds: from connecting to the last byte of an answer; an upload gets more by its size.
        num_bytes: largest body of an answer, unpacked; a request may have its own, as an extension of that
            name, and one that is streamed is its reader's to bound.
        sheds_key: whether a request without a body may leave the origin, without its key.
        deadline: holds for all requests together in place of `seconds`.
        options: of `httpx.Client`.

    Raises:
        HttpAnswerError: of every request: an answer is late, too large, packed in a way that was not asked
            for, a page of HTML, or elsewhere.

    Example:
        >>> with BoundedClient(seconds=5, num_bytes=2**20) as client:
        ...     client.follow_redirects
        True
    """

    def __init__(
        self,
        *,
        seconds: float,
        num_bytes: int,
        sheds_key: bool = False,
        deadline: Deadline | None = None,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        """See the class."""
        check_proxies()
        super().__init__(
            headers={"Accept-Encoding": "gzip, deflate", **(headers or {})},
            timeout=options.pop("timeout", httpx.Timeout(min(60.0, seconds), connect=min(10.0, seconds))),
            limits=httpx.Limits(max_keepalive_connections=0),
            follow_redirects=True,
            **options,
        )
        self._seconds = seconds
        self._num_bytes = num_bytes
        self._sheds_key = sheds_key
        self._shared = deadline

    def send(
        self,
        request: httpx.Request,
        *,
        stream: bool = False,
        auth: Any = httpx.USE_CLIENT_DEFAULT,
        follow_redirects: Any = httpx.USE_CLIENT_DEFAULT,
    ) -> httpx.Response:
        """The answer to a request, whole, or with `stream` as far as its head (give a `deadline` then)."""
        length = int(request.headers.get("Content-Length", 0))
        clock: Any = Deadline(self._seconds + length / _SLOWEST)
        with clock if self._shared is None else contextlib.nullcontext(self._shared) as deadline:
            request.extensions["trace"] = deadline.note
            try:
                response = self._arrived(request, auth)
                if stream:
                    return response
                if request.method == "HEAD":
                    response.read()
                    return response
                with contextlib.closing(response):
                    body = b"".join(pieces(response, request.extensions.get("num_bytes", self._num_bytes)))
            except httpx.HTTPError:
                if not deadline.passed:
                    raise
            if deadline.passed:  # a body whose length nobody announced ends, cut off, like a whole one
                raise LateAnswerError(
                    f"{origin(request.url)}: no whole answer after {deadline.seconds:,g} seconds",
                    "try again, or allow it more time",
                    True,
                )
        headers = [pair for pair in response.headers.multi_items() if pair[0] not in _OF_THE_WIRE]
        return httpx.Response(
            response.status_code,
            headers=headers,
            content=body,
            request=response.request,
            extensions=response.extensions,
        )

    def _transport_for_url(self, url: httpx.URL) -> httpx.BaseTransport:
        """How an address is asked; patterns of httpx (`mounts`, `NO_PROXY`) know no ranges of addresses."""
        return self._transport if is_loopback(url.host) else super()._transport_for_url(url)

    def _arrived(self, request: httpx.Request, auth: Any) -> httpx.Response:
        """The answer behind all redirects, its body unread; to HEAD that of the origin which was asked."""
        for _ in range(_HOPS):
            response = super().send(request, stream=True, auth=auth, follow_redirects=False)
            following = response.next_request
            leaves = following is not None and origin(following.url) != origin(request.url)
            if following is None or (leaves and request.method == "HEAD"):
                _check_head(response)
                return response
            response.close()
            if leaves:
                check_leaving(request, following.url, self._sheds_key)
                auth = None
                for name in set(following.headers) - {*_PUBLIC}:
                    del following.headers[name]
            request = following
        raise HttpAnswerError(
            f"{origin(request.url)}: it sends from one address to the next, {_HOPS} times",
            "check the address",
        )


def check_leaving(request: Any, target: Any, sheds_key: bool) -> None:
    """Refuse a redirect to another origin of what only the one that was named may have.

    Args:
        request: of httpx, or of a library like it.
        target: where the redirect leads.
        sheds_key: whether the request is sent on without its key.

    Raises:
        HttpAnswerError: it has a body or a key.
    """
    here, there = origin(request.url), origin(target)
    bare = request.method in ("GET", "HEAD") and (sheds_key or not set(request.headers) - {*_PUBLIC})
    if here != there and not bare:
        raise HttpAnswerError(
            f"{here} sends on to {there}, and neither a key nor a body leaves the server that was named",
            f"write {there} in place of {here} if you trust it",
        )


_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")


def pieces(response: httpx.Response, num_bytes: int) -> Iterator[bytes]:
    """The body of an answer, unpacked, piece by piece.

    Args:
        response: unread.
        num_bytes: that it may have, unpacked.

    Raises:
        HttpAnswerError: it has more, which is known from its head where that says it.
    """
    too_large = HttpAnswerError(
        f"{origin(response.request.url)}: more than {num_bytes:,} bytes come, unpacked", "check the address"
    )
    announced = response.headers.get("Content-Length", "")
    if announced.isdecimal() and int(announced) > num_bytes and not _packing(response):
        raise too_large
    come = 0
    for piece in response.iter_bytes():
        come += len(piece)
        if come > num_bytes:
            raise too_large
        yield piece


def json_object(response: httpx.Response) -> dict[str, Any]:
    """The JSON object that a whole answer holds.

    Args:
        response: read.

    Raises:
        HttpAnswerError: it holds something else.

    Example:
        >>> json_object(httpx.Response(200, content=b'{"a": [1]}'))
        {'a': [1]}
    """
    try:
        content = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict):
        raise HttpAnswerError(
            f"{origin(response.request.url)}: something comes that is no object of JSON", "check the address"
        )
    return content


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, which is asked without a proxy: a proxy's loopback is another's.

    Args:
        host: of an address, as httpx has it: in lower case, without brackets.

    Example:
        >>> [is_loopback(host) for host in ("localhost", "127.8.0.1", "::1", "10.0.0.1", "127.example.org")]
        [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def origin(url: Any) -> str:
    """Scheme, host and port of an address.

    Example:
        >>> origin(httpx.URL("http://me:secret@host.org:80/path")), origin(httpx.URL("https://host.org:8443"))
        ('http://host.org', 'https://host.org:8443')
    """
    return f"{url.scheme}://{url.netloc.decode('ascii')}"


def _packing(response: httpx.Response) -> str:
    packing = response.headers.get("Content-Encoding", "").strip().lower()
    return "" if packing == "identity" else packing


def _check_head(response: httpx.Response) -> None:
    """Refuse a body that nobody asked for, before it is read."""
    here, packing = origin(response.request.url), _packing(response)
    if packing not in _PACKINGS:
        raise HttpAnswerError(f"{here}: the answer is packed as {packing!r}, unasked", "check the address")
    kind = response.headers.get("Content-Type", "").strip().lower()
    if response.request.method != "HEAD" and response.is_success and kind.startswith("text/html"):
        raise HttpAnswerError(f"{here}: a page of HTML comes in place of data", "check the address", True)
