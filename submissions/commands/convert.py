"""`cir convert`: rank files from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from submissions.commands.words import BENCHMARK_HELP, as_text

if TYPE_CHECKING:
    from submissions.conversion import Converted


def convert_command(
    files: Annotated[list[str], typer.Argument(help="One rank file, or the CIRR server's two.")],
    to: Annotated[
        str, typer.Option("--to", help="Format to write: native, cirr-server, circo-server or zerosight.")
    ],
    benchmark: Annotated[str | None, typer.Option("--benchmark", "-b", help=BENCHMARK_HELP)] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="File or folder; of CIRR's two files each adds its metric to the name."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the method in a native file, up to 80 characters.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the files written as JSON: file, format, part.")
    ] = False,
) -> None:
    """Write a rank file in another format; the CIRR server's two files are joined and split.

    The names of the files written are printed, one a line.

    \b
    Example:
        cir convert run.json --to cirr-server
    """
    from submissions.conversion import convert
    from submissions.rank_file import write_bytes

    written = []
    for converted in convert(files, to, benchmark=benchmark, name=name):
        path = str(write_bytes(converted.content, _target(converted, files[0], to, out)))
        written.append({"file": path, "format": to, "part": converted.part})
        if not as_json:
            typer.echo(path)
    if as_json:
        typer.echo(as_text(written))


def _target(converted: Converted, first: str, to: str, out: Path | None) -> Path:
    """Where a converted file goes: beside the first input, or where the caller said."""
    part = f".{converted.part}" if converted.part else ""
    source = Path(first)
    name = f"{source.stem}.{to}{part}.json"
    if out is None:
        return source.with_name(name)
    if out.is_dir() or not out.suffix:
        return out / name
    return out.with_name(f"{out.stem}{part}{out.suffix}") if part else out
