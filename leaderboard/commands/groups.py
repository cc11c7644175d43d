"""The group `cir leaderboard`: its commands, in the order of its help."""

from __future__ import annotations

import typer

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
    group.command("serve")(serve)
    group.command("work")(work)
    group.command("add")(add)
    group.command("show")(show)
    group.command("submissions")(submissions)
    group.command("export-hub")(export_hub)
    group.command("export-html")(export_html)
    group.command("space")(space)
    group.command("export")(export)
    group.command("import")(import_)
    group.command("backup")(backup)
    group.command("verify")(verify)
    group.command("take-over")(take_over)
    group.command("squash")(squash)
    group.command("rebuild")(rebuild)
    group.command("rescore")(rescore)
    group.command("change")(change)
    group.command("pause")(pause)
    group.add_typer(token_commands(), name="token")
    group.command("pull")(pull)
    return group
