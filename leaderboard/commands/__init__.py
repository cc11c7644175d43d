"""Commands of the leaderboard: `cir leaderboard`, `cir submit` and `cir receipt`, one file a family."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from leaderboard.options import need_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from leaderboard.server import Server


@contextmanager
def opened_server(command: str, home: Path | None) -> Iterator[Server]:
    """The leaderboard of a home, for one command."""
    need_server(command)
    from leaderboard import settings
    from leaderboard.server import Server

    with closing(Server.open(settings.read(home))) as server:
        yield server
