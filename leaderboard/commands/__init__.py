"""Commands of the leaderboard: `cir leaderboard`, `cir submit` and `cir receipt`, one file a family."""

from __future__ import annotations

from contextlib import closing, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cir_datasets.errors import missing_extra

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from leaderboard.server import Server

_SERVER_MODULES = ("cryptography", "fastapi", "multipart", "sqlalchemy", "uvicorn")


def need_server(command: str) -> None:
    """Refuse a command where what a server needs is not installed.

    Raises:
        MissingExtraError: it is not.
    """
    missing = [name for name in _SERVER_MODULES if find_spec(name) is None]
    if missing:
        raise missing_extra(command, ", ".join(missing), "leaderboard")


@contextmanager
def opened_server(command: str, home: Path | None) -> Iterator[Server]:
    """The leaderboard of a home, for one command."""
    need_server(command)
    from leaderboard import settings
    from leaderboard.server import Server

    with closing(Server.open(settings.read(home))) as server:
        yield server
