"""`cir datasets template`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.common.terminal import echo


def template_folder(
    name: Annotated[
        str, typer.Argument(help="A benchmark whose data is pending publication: fisd, zerosight.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write; nothing is overwritten.")],
    config: Annotated[
        list[str] | None,
        typer.Option("--config", help="A configuration (of fisd: an aspect); again for more. Default: all."),
    ] = None,
) -> None:
    """Write a small invented example of the folder that a benchmark is read from.

    It loads with --no-checks, since its counts are not the benchmark's. README.txt in it says what each file
    must hold. The names of the files are printed, one a line.

    \b
    Example:
        cir datasets template fisd FISD
        cir datasets prepare fisd --data-dir FISD --no-checks
    """
    from cir_datasets.export.template import write_template

    for path in write_template(name, folder, config or ()):
        echo(str(path))
