"""The port that the server listens on."""

from __future__ import annotations

import asyncio
import socket

from leaderboard.web import serving


def test_what_is_written_to_a_connection_goes_out_at_once() -> None:
    async def no_delay() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def arrived(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            found.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = serving._listen("127.0.0.1", 0)
        async with await asyncio.start_server(arrived, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            writer.close()
            return await found

    assert asyncio.run(no_delay())
