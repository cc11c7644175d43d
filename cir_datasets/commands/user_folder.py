"""`cir datasets new` and `cir datasets check`: benchmarks of one's own."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.commands import Json
from cir_datasets.common.terminal import echo, echo_json


def new_benchmark(
    name: Annotated[str, typer.Argument(help="Its name: small letters, digits and _.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where to write: a folder; default: ./NAME."),
    ] = None,
    sessions: Annotated[
        bool, typer.Option("--sessions", help="Its rows are sessions of several turns.")
    ] = False,
) -> None:
    """Write a folder that is a benchmark: a small example, with a card whose comments explain each line.

    \b
    Example:
        cir datasets new mine
        cir datasets check mine
    """
    from cir_datasets.construction.new_folder import new_folder

    folder = new_folder(name, out, sessions=sessions)
    for path in sorted(path for path in folder.iterdir()):
        echo(str(path))
    check = f"cir datasets check {shlex.quote(str(folder))}"
    echo(f"Next: put your rows, images and pictures there, then  {check}", err=True)


def check_benchmark(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that holds card.yaml.")],
    no_pictures: Annotated[
        bool, typer.Option("--no-pictures", help="Do not look for the pictures, which takes longest.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say everything that is missing or wrong in a folder that is to be a benchmark, and how to fix it.

    The exit code is 1 where something is wrong. `docs/your_benchmark.md` says what the files hold.

    \b
    Example:
        cir datasets check mine
    """
    from cir_datasets.construction.folder_check import check_folder

    found = check_folder(folder, pictures=not no_pictures)
    if as_json:
        echo_json(found.to_dict())
    else:
        echo(found.text())
    if not found.ok:
        raise typer.Exit(1)
