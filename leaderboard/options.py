"""Options that several commands of leaderboards have in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="Folder of database and files; default: CIR_LEADERBOARD_HOME, else the user's data folder.",
        show_default=False,
    ),
]
