"""The group `cir leaderboard`: its commands, in the order of its help."""

from __future__ import annotations

from collections.abc import Callable

import typer

from cir_datasets.commands import CommandOfOptions
from leaderboard.commands.add import add, rebuild
from leaderboard.commands.copy import backup, export, import_, squash, take_over, verify
from leaderboard.commands.organise import change, pause, rescore
from leaderboard.commands.serve import serve, work
from leaderboard.commands.show import show, submissions
from leaderboard.commands.submit import pull
from leaderboard.commands.tokens import token_commands
from leaderboard.export.commands import export_html, export_hub
from leaderboard.options import ServerCommand
from leaderboard.space.commands import space

_COMMANDS: tuple[tuple[type[CommandOfOptions], tuple[Callable[..., None], ...]], ...] = (
    (ServerCommand, (serve, work, add, show, submissions, export_hub, export_html)),
    (CommandOfOptions, (space,)),
    (ServerCommand, (export, import_, backup, verify, take_over, squash, rebuild, rescore, change, pause)),
    (CommandOfOptions, (pull,)),
)
"""In the order of the help; for some no server need be installed."""


def leaderboard_commands() -> typer.Typer:
    """The group `cir leaderboard`."""
    group = typer.Typer(no_args_is_help=True, help="Run a leaderboard, or put entries onto its boards.")
    for kind, functions in _COMMANDS:
        for function in functions:
            group.command(function.__name__.strip("_").replace("_", "-"), cls=kind)(function)
    group.add_typer(token_commands(), name="token")
    return group
