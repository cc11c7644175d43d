"""Commands of the leaderboard: `cir leaderboard`, `cir submit` and `cir receipt`, one file a family."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from leaderboard.server import Server
    from leaderboard.store import Store


@contextmanager
def opened_server(home: Path | None) -> Iterator[Server]:
    """The leaderboard of a home, for one command."""
    from leaderboard import settings
    from leaderboard.server import Server

    with closing(Server.open(settings.read(home))) as server:
        yield server


@contextmanager
def opened_store(home: Path | None) -> Iterator[Store]:
    """The store of a home, whose boards are known then, for one command."""
    from leaderboard import boards, settings
    from leaderboard.store import Store

    chosen = settings.read(home)
    boards.use(chosen.home)
    with closing(Store.of(chosen)) as store:
        yield store
