"""The commands of this room: one module a verb, each free of heavy imports."""

from __future__ import annotations

import typer

from submissions.commands.compare import compare_command
from submissions.commands.convert import convert_command
from submissions.commands.embed import embed_command
from submissions.commands.embeddings import register_embeddings
from submissions.commands.entries import entries_command
from submissions.commands.fuse import fuse_command
from submissions.commands.methods import register_methods
from submissions.commands.run import run_command
from submissions.commands.score import score_command
from submissions.commands.train import register_train
from submissions.commands.validate import validate_command


def register(app: typer.Typer) -> None:
    """Add the commands of this room to the `cir` command."""
    app.command("validate")(validate_command)
    app.command("score")(score_command)
    app.command("compare")(compare_command)
    app.command("convert")(convert_command)
    app.command("fuse")(fuse_command)
    app.command("run")(run_command)
    app.command("entries")(entries_command)
    app.command("embed")(embed_command)
    register_embeddings(app)
    register_methods(app)
    register_train(app)
