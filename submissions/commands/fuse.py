"""`cir fuse`: one rank file from several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.commands.options import DataDirAnywhere, NoChecksAnywhere
from cir_datasets.common.terminal import echo
from submissions.commands.options import Benchmark, KeptImages
from submissions.commands.outputs import check_file
from submissions.commands.words import as_text


def fuse_command(
    files: Annotated[
        list[str], typer.Argument(help="Two rank files or more of one benchmark, or bundles of one suite.")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Where to write: a file in the native format, .json or .json.gz."),
    ],
    by: Annotated[str, typer.Option("--by", help="How to fuse: rrf, reciprocal rank fusion.")] = "rrf",
    constant: Annotated[
        int,
        typer.Option("--constant", help="Constant of rrf, from 0: an image gets 1 / (constant + its rank)."),
    ] = 60,
    k: KeptImages = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="Name of what is made: the method's, up to 80 characters; default: of all names."
        ),
    ] = None,
    benchmark: Benchmark = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: file, benchmark, method.")] = False,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Fuse the rankings of several methods into one rank file.

    The name of the file written is printed.

    \b
    Example:
        cir fuse a.json b.json --out fused.json
    """
    from submissions.rank_file.model import RankBundle, write
    from submissions.transform.fuse import fuse

    check_file(out)
    fused = fuse(files, benchmark, by=by, constant=constant, k=k, name=name)
    written = str(write(fused, out))
    if not as_json:
        echo(written)
        return
    first = fused.runs[0] if isinstance(fused, RankBundle) else fused
    answered = fused.suite if isinstance(fused, RankBundle) else fused.benchmark
    echo(as_text({"file": written, "benchmark": answered, "method": first.method.name}))
