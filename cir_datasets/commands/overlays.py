"""`cir datasets overlay`: registering filter lists, listing and removing them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cir_datasets.commands import (
    CommandOfOptions,
    Json,
    LoadsBenchmarks,
    argument,
    benchmark_values,
    command,
    option,
)
from cir_datasets.common.terminal import counted, echo, echo_json, fitted


def overlay_commands() -> typer.Typer:
    """The group `cir datasets overlay`."""
    group = typer.Typer(
        help="Overlays: filter lists laid over a benchmark, such as cirr/val+shortcut_free.",
        no_args_is_help=True,
    )
    group.callback()(_group)
    group.command("add", cls=CommandOfOptions)(add_overlay_file)
    group.command("list", cls=CommandOfOptions)(list_overlays)
    group.command("remove", cls=CommandOfOptions)(remove_overlay)
    return group


def _group() -> None:
    """Overlays: filter lists laid over a benchmark, such as cirr/val+shortcut_free."""


class AddOverlayOptions(LoadsBenchmarks):
    """What `cir datasets overlay add` takes."""

    file: str = argument(..., "JSON, or Parquet with the columns query_id and (optionally) label.")
    benchmark: str | None = option(
        None, "Id of the benchmark, where the file does not name it.", "-b", values=benchmark_values
    )
    name: str | None = option(None, "Name of what is made: the overlay's, where the file has none.")
    replace: bool = option(False, "Take the place of a registered overlay of the same name.")
    as_json: Json = False


@command
def add_overlay_file(options: AddOverlayOptions) -> None:
    """Register an overlay: the benchmark's id, a plus and its name are an id from then on.

    It is copied to the folder CIR_OVERLAYS (without that, to the cache). A name that is registered already is
    refused without --replace.

    A JSON file reads {"overlay": "short", "benchmark": "cirr/val", "benchmark_version": 1, "source": "...",
    "queries": ["10001", ...]}; "queries" may also be an object of labels by query id.

    \b
    Example:
        cir datasets overlay add shortcut_free.json
        cir score run.json --benchmark cirr/val+shortcut_free
    """
    from cir_datasets.prepared import add_overlay

    overlay = options.call(add_overlay, path=options.file)
    if options.as_json:
        import json

        echo(json.dumps({"id": overlay.id, "queries": len(overlay.labels), "source": overlay.source}))
    else:
        echo(f"{overlay.id}: {counted(len(overlay.labels), 'query', 'queries')}")


def list_overlays(as_json: Json = False) -> None:
    """List the registered overlays: name, benchmark, kind, how many queries are left, and where each lies.

    The kind is filter, or filter with labels. A file that cannot be used is listed with its mistake.

    \b
    Example:
        cir datasets overlay list
    """
    from cir_datasets.common.paths import overlay_home
    from cir_datasets.registry.overlays import overlay_paths

    rows = [_described(overlay, path) for overlay, path in overlay_paths().items()]
    if as_json:
        echo_json(rows)
    elif rows:
        heads = ("name", "benchmark", "kind", "queries", "file")
        cells = [
            [str(row["error"] if head == "kind" and row["error"] else row[head]) for head in heads]
            for row in rows
        ]
        echo(fitted([[head.upper() for head in heads], *cells]))
    else:
        echo(f"No overlay is registered in {overlay_home()}. Add one: cir datasets overlay add FILE")


def remove_overlay(
    name: Annotated[
        str, typer.Argument(help="Id of the overlay, cirr/val+short, or its name where one benchmark has it.")
    ],
) -> None:
    """Remove a registered overlay: its file is deleted, and its id is unknown from then on.

    The benchmark that it was laid over, and the file that was added, stay as they are.

    \b
    Example:
        cir datasets overlay remove cirr/val+shortcut_free
    """
    from cir_datasets.errors import OverlayError
    from cir_datasets.registry.overlays import overlay_paths

    paths = overlay_paths()
    found = _chosen(name, tuple(paths))
    try:
        paths[found].unlink()
    except OSError as error:
        raise OverlayError(
            f"{paths[found]}: cannot be deleted: {error.strerror}. Fix: delete it yourself."
        ) from error
    echo(f"{found}: removed ({paths[found]} is deleted)")


def _described(overlay: str, path: Path) -> dict[str, Any]:
    """One registered overlay as `cir datasets overlay list --json` prints it."""
    from cir_datasets import registry
    from cir_datasets.registry import read_overlay
    from cir_metrics.errors import CirError

    base, _, name = overlay.partition("+")
    row: dict[str, Any] = {"id": overlay, "name": name, "benchmark": base, "kind": "", "queries": ""}
    row |= {"file": str(path), "error": ""}
    try:
        found = read_overlay(path, benchmark=base)
        total = registry.spec(base).config.queries
    except CirError as error:
        return row | {"error": f"cannot be used: {error}"}
    labelled = any(label is not None for label in found.labels.values())
    of = "" if total is None else f" of {total:,}"
    return row | {
        "kind": "filter with labels" if labelled else "filter",
        "queries": f"{len(found.labels):,}{of}",
    }


def _chosen(name: str, known: tuple[str, ...]) -> str:
    """The id of the registered overlay that is meant.

    Raises:
        CallError: it is a benchmark or a suite, or several benchmarks have an overlay of that name.
        UnknownNameError: no registered overlay has that name or id.
    """
    from cir_datasets.registry import benchmark_ids, names
    from cir_datasets.registry.suites import suite_ids
    from cir_metrics.errors import CallError, UnknownNameError, did_you_mean

    if name in known:
        return name
    if name in (*names(), *benchmark_ids(), *suite_ids()):
        raise CallError(
            f"{name} is a benchmark or a suite, not an overlay; nothing was removed. "
            "Fix: name one of  cir datasets overlay list."
        )
    same = [each for each in known if each.partition("+")[2] == name]
    if len(same) == 1:
        return same[0]
    if same:
        raise CallError(
            f"the overlay {name!r} lies over several benchmarks. Fix: name one: {', '.join(same)}."
        )
    listed = (
        f"choose one of {', '.join(known)}" if known else "none is registered; there is nothing to remove"
    )
    raise UnknownNameError(f"no overlay {name!r}.{did_you_mean(name, known)} Fix: {listed}.")
