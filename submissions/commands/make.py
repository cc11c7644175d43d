"""`cir make`: the construction pipelines, and their folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cir_metrics.terminal import echo

Folder = Annotated[Path, typer.Argument(help="Folder of a run of `cir make`.")]
Format = Annotated[str, typer.Option("--format", "-f", help="table, json, csv, latex or markdown.")]


def make_commands() -> typer.Typer:
    """The group `cir make`."""
    group = typer.Typer(
        help="Make a benchmark from images, videos, captions or another benchmark.", no_args_is_help=True
    )
    group.command("status")(status)
    group.command("again")(again)
    return group


def status(folder: Folder, format: Format = "table") -> None:
    """Show how far each stage of a run is.

    Example: cir make status my-sessions
    """
    from cir_datasets.common.tables import render
    from cir_datasets.construction.report import stage_table
    from cir_datasets.construction.workspace import states_of

    echo(render([stage_table(states_of(folder))], format))


def again(
    folder: Folder,
    stage: Annotated[str, typer.Option("--from", help="The first stage that is to be made anew.")],
) -> None:
    """Forget a stage and all later ones; the next run makes them anew.

    What language models have answered stays in their cache, so that none is asked twice.

    Example: cir make again my-sessions --from captions
    """
    from cir_datasets.construction.workspace import forget_from, only_run

    with only_run(folder):
        for path in forget_from(folder, stage):
            echo(f"removed {path}", err=True)
