"""`cir datasets new` and `cir datasets check`: benchmarks of one's own."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from cir_datasets.commands import Json, Options, argument, command, option
from cir_datasets.common.terminal import echo, echo_json


class NewOptions(Options):
    """What `cir datasets new` takes."""

    name: str = argument(..., "Its name: small letters, digits and _.")
    out: Path | None = option(None, "Where to write: a folder; default: ./NAME.", "-o", metavar="DIR")
    sessions: bool = option(False, "Its rows are sessions of several turns.")


@command
def new_benchmark(options: NewOptions) -> None:
    """Write a folder that is a benchmark: a small example, with a card whose comments explain each line.

    \b
    Example:
        cir datasets new mine
        cir datasets check mine
    """
    from cir_datasets.construction.new_folder import new_folder

    folder = new_folder(options.name, options.out, sessions=options.sessions)
    for path in sorted(folder.iterdir()):
        echo(str(path))
    check = f"cir datasets check {shlex.quote(str(folder))}"
    echo(f"Next: put your rows, images and pictures there, then  {check}", err=True)


class CheckOptions(Options):
    """What `cir datasets check` takes."""

    folder: Path = argument(..., "The folder that holds card.yaml.", metavar="DIR")
    no_pictures: bool = option(False, "Do not look for the pictures, which takes longest.")
    as_json: Json = False


@command
def check_benchmark(options: CheckOptions) -> None:
    """Say everything that is missing or wrong in a folder that is to be a benchmark, and how to fix it.

    The exit code is 1 where something is wrong. `docs/your_benchmark.md` says what the files hold.

    \b
    Example:
        cir datasets check mine
    """
    from cir_datasets.construction.folder_check import check_folder

    report = check_folder(options.folder, pictures=not options.no_pictures)
    if options.as_json:
        echo_json(report.to_dict())
    else:
        echo(report.text())
    if not report.ok:
        raise typer.Exit(1)
