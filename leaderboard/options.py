"""What several commands of leaderboards have in common: options in the same words, what they need."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from cir_datasets.commands import CommandOfOptions
from cir_datasets.errors import missing_extra

Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="Folder of database and files; default: CIR_LEADERBOARD_HOME, else the user's data folder.",
    ),
]

_SERVER_MODULES = ("cryptography", "fastapi", "multipart", "sqlalchemy", "uvicorn")


class ServerCommand(CommandOfOptions):
    """A command that is refused where what a server needs is not installed."""

    def invoke(self, ctx: Any) -> Any:
        """Look for the modules, then run it."""
        missing = [name for name in _SERVER_MODULES if find_spec(name) is None]
        if missing:
            raise missing_extra(ctx.command_path, ", ".join(missing), "leaderboard")
        return super().invoke(ctx)
