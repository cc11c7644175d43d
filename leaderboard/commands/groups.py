"""The group `cir leaderboard`: its commands, in the order of its help."""

from __future__ import annotations

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
from leaderboard.space.commands import space


def leaderboard_commands() -> typer.Typer:
    """The group `cir leaderboard`."""
    group = typer.Typer(no_args_is_help=True, help="Run a leaderboard, or put entries onto its boards.")
    group.command("serve", cls=CommandOfOptions)(serve)
    group.command("work", cls=CommandOfOptions)(work)
    group.command("add", cls=CommandOfOptions)(add)
    group.command("show", cls=CommandOfOptions)(show)
    group.command("submissions", cls=CommandOfOptions)(submissions)
    group.command("export-hub", cls=CommandOfOptions)(export_hub)
    group.command("export-html", cls=CommandOfOptions)(export_html)
    group.command("space", cls=CommandOfOptions)(space)
    group.command("export", cls=CommandOfOptions)(export)
    group.command("import", cls=CommandOfOptions)(import_)
    group.command("backup", cls=CommandOfOptions)(backup)
    group.command("verify", cls=CommandOfOptions)(verify)
    group.command("take-over", cls=CommandOfOptions)(take_over)
    group.command("squash", cls=CommandOfOptions)(squash)
    group.command("rebuild", cls=CommandOfOptions)(rebuild)
    group.command("rescore", cls=CommandOfOptions)(rescore)
    group.command("change", cls=CommandOfOptions)(change)
    group.command("pause", cls=CommandOfOptions)(pause)
    group.add_typer(token_commands(), name="token")
    group.command("pull", cls=CommandOfOptions)(pull)
    return group
