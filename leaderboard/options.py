"""What several commands of leaderboards have in common: options in the same words, what they need."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.errors import missing_extra

Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="Folder of database and files; default: CIR_LEADERBOARD_HOME, else the user's data folder.",
    ),
]

_SERVER_MODULES = ("cryptography", "fastapi", "multipart", "sqlalchemy", "uvicorn")


def need_server(command: str) -> None:
    """Refuse a command where what a server needs is not installed.

    Raises:
        MissingExtraError: it is not.
    """
    missing = [name for name in _SERVER_MODULES if find_spec(name) is None]
    if missing:
        raise missing_extra(command, ", ".join(missing), "leaderboard")
