"""`cir make`: the construction pipelines, and their folders."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from cir_datasets.commands import CommandOfOptions
from cir_datasets.common.terminal import echo
from cir_metrics.errors import CallError
from submissions.commands import as_text

if TYPE_CHECKING:
    from cir_datasets.construction.workspace import Workspace

Folder = Annotated[Path, typer.Argument(help="Folder of a run of `cir make`.")]


class _Makers(TyperGroup):
    """The group, which says where a command has gone."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command that is called."""
        if args[:1] == ["clips"]:
            raise CallError(
                "cir make clips is a script now. "
                "Fix: in a clone, python -m examples.clips --out FOLDER --videos N"
            )
        return super().resolve_command(ctx, args)


def make_commands() -> typer.Typer:
    """The group `cir make`."""
    from submissions.commands.make_circled import circled_command
    from submissions.commands.make_cirr import cirr_command, cirr_import_command
    from submissions.commands.make_fisd import fisd_command
    from submissions.commands.make_judge import comparison_command, judge_command
    from submissions.commands.make_overlay import overlay_command
    from submissions.commands.make_review import review_command, review_import_command
    from submissions.commands.make_zerosight import zerosight_command

    group = typer.Typer(
        cls=_Makers,
        help="Make a benchmark from images, videos, captions or another benchmark.",
        no_args_is_help=True,
    )
    group.command("circled", cls=CommandOfOptions)(circled_command)
    group.command("fisd", cls=CommandOfOptions)(fisd_command)
    group.command("zerosight", cls=CommandOfOptions)(zerosight_command)
    group.command("comparison", cls=CommandOfOptions)(comparison_command)
    group.command("judge", cls=CommandOfOptions)(judge_command)
    group.command("cirr", cls=CommandOfOptions)(cirr_command)
    group.command("cirr-import", cls=CommandOfOptions)(cirr_import_command)
    group.command("overlay", cls=CommandOfOptions)(overlay_command)
    group.command("review", cls=CommandOfOptions)(review_command)
    group.command("review-import", cls=CommandOfOptions)(review_import_command)
    group.command("status")(status)
    group.command("again")(again)
    return group


def status(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs of `cir make`.")],
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON: the stages, with the settings; of several runs a list."),
    ] = False,
) -> None:
    """Show how far each stage of a run is: rows, those that failed, the file, and what is a benchmark.

    Of several runs of `cir make circled` that are done it shows what the filters removed: a row each, a row
    a dataset and a total. Of a run of `cir make fisd` it counts the edits that were refused, by rule.

    \b
    Example:
        cir make status my-sessions
        cir make status made/*
    """
    from cir_datasets.common.tables import render
    from cir_datasets.construction.circled.filters import counts
    from cir_datasets.construction.circled.tables import filter_table
    from cir_datasets.construction.fisd.outcome import refusals
    from cir_datasets.construction.folder import benchmarks_in
    from cir_datasets.construction.report import stage_table
    from cir_datasets.construction.workspace import Workspace

    runs = [Workspace.existing(folder) for folder in folders]
    if as_json:
        documents = [_document(run) for run in runs]
        echo(as_text(documents[0] if len(documents) == 1 else documents))
        return
    filtered: dict[str, dict[str, int]] = {}
    for run in runs:
        source = str(run.settings.get("benchmark"))
        if len(runs) > 1 and run.kind == "circled" and all(stage.finished for stage in run.states()):
            if source in filtered:
                raise CallError(f"{run.folder}: another run is of {source}, too. Fix: leave one of them out.")
            filtered[source] = counts(run.rows("filters", tuple))
            continue
        refused = refusals(run) if run.kind == "fisd" else None
        echo(render([stage_table(run.states()), *([refused] if refused else [])], "table"))
        for benchmark in benchmarks_in(run.folder):
            echo(f"benchmark: {benchmark}")
    if filtered:
        echo(render([filter_table(filtered)], "table"))


def _document(run: Workspace) -> dict[str, Any]:
    from cir_datasets.construction.folder import benchmarks_in

    shown = [
        {**dataclasses.asdict(each), "file": each.file.name, "state": each.state} for each in run.states()
    ]
    names = [benchmark.name for benchmark in benchmarks_in(run.folder)]
    return {"pipeline": run.kind, "settings": run.settings, "stages": shown, "benchmarks": names}


def again(
    folder: Folder,
    stage: Annotated[
        str,
        typer.Option(
            "--from",
            help="The first stage that is to be made anew; `cir make status` lists them. `result`: none, and "
            "changes of the last one are taken too.",
        ),
    ],
) -> None:
    """Forget a stage and all later ones; the next run makes them anew.

    What you have changed in the files of earlier stages is taken as it is. What language models have answered
    stays in their cache, so that none is asked twice.

    \b
    Example:
        cir make again my-sessions --from turn-1
    """
    from cir_datasets.construction.workspace import Workspace

    run = Workspace.existing(folder)
    with run.held(folder):
        removed = run.forget_from(stage)
    for path in removed:
        echo(f"removed {path}", err=True)
    if not removed:
        echo("nothing was removed; the stages' files are taken as they are.", err=True)
