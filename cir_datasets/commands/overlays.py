"""`cir datasets overlay add`."""

from __future__ import annotations

from typing import Annotated

import typer

from cir_datasets.commands.options import Json
from cir_datasets.common.counts import counted
from cir_metrics.terminal import echo


def overlay_commands() -> typer.Typer:
    """The group `cir datasets overlay`."""
    group = typer.Typer(
        help="Overlays: filter lists laid over a benchmark, such as cirr/val+shortcut_free.",
        no_args_is_help=True,
    )
    group.callback()(_group)
    group.command("add")(add_overlay_file)
    return group


def _group() -> None:
    """Overlays: filter lists laid over a benchmark, such as cirr/val+shortcut_free."""


def add_overlay_file(
    file: Annotated[
        str, typer.Argument(help="JSON, or Parquet with the columns query_id and (optionally) label.")
    ],
    benchmark: Annotated[
        str | None,
        typer.Option("--benchmark", "-b", help="Id of the benchmark, where the file does not name it."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of what is made: the overlay's, where the file has none."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of a registered overlay of the same name.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Register an overlay: the benchmark's id, a plus and its name are an id from then on.

    It is copied to the folder CIR_OVERLAYS (without that, to the cache); deleting it there unregisters it. A
    name that is registered already is refused without --replace.

    A JSON file reads {"overlay": "short", "benchmark": "cirr/val", "benchmark_version": 1, "source": "...",
    "queries": ["10001", ...]}; "queries" may also be an object of labels by query id.

    \b
    Example:
        cir datasets overlay add shortcut_free.json
        cir score run.json --benchmark cirr/val+shortcut_free
    """
    from cir_datasets.prepared.add_overlay import add_overlay

    overlay = add_overlay(file, benchmark=benchmark, name=name, replace=replace)
    if as_json:
        import json

        echo(json.dumps({"id": overlay.id, "queries": len(overlay.labels), "source": overlay.source}))
    else:
        echo(f"{overlay.id}: {counted(len(overlay.labels), 'query', 'queries')}")
