"""`cir leaderboard space`, in a file of its own: the command line reads no Hub library before it is named."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.common.terminal import counted, echo
from cir_metrics.errors import CallError


def space(
    to: Annotated[
        str,
        typer.Option(
            "--to", help="Where to: the Space, made if need be.", metavar="OWNER/NAME", show_default=False
        ),
    ],
    dry_run: Annotated[
        Path | None,
        typer.Option(
            "--dry-run",
            help="Write its files to this folder, and push nothing.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make what is new private: the Space.")] = False,
) -> None:
    """Put this leaderboard together as a Space of the Hugging Face Hub, and push it in one commit.

    It runs from a checkout of cir-benchmarks. The Space installs the versions of constraints.txt.

    \b
    Example:
        cir leaderboard space --to me/leaderboard --dry-run space
    """
    from leaderboard.export.hub import is_repository
    from leaderboard.space.assemble import assemble, push

    if not is_repository(to):
        raise CallError(f"--to: {to!r} is not the id of a Space. Fix: write OWNER/NAME.")
    if dry_run is not None:
        written = assemble(dry_run)
        echo(f"{counted(len(written), 'file')} in {dry_run}; nothing was pushed.")
        echo(f"Try it: cd {dry_run} && pip install -r requirements.txt && python app.py", err=True)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "space"
        assemble(folder)
        echo(push(folder, to, private=private))
