"""`cir fuse`: one rank file from several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.commands.options import NoChecksAnywhere
from cir_metrics.terminal import echo
from submissions.commands.options import Benchmark
from submissions.commands.outputs import check_file
from submissions.commands.words import as_text


def fuse_command(
    files: Annotated[
        list[str], typer.Argument(help="Two rank files or more of one benchmark, or bundles of one suite.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File to write, in the native format: .json or .json.gz.")
    ],
    method: Annotated[
        str, typer.Option("--method", "-m", help="How to fuse: rrf, reciprocal rank fusion.")
    ] = "rrf",
    k: Annotated[
        int, typer.Option("--k", help="Constant of rrf, a rank from 0: an image gets 1 / (k + its rank).")
    ] = 60,
    depth: Annotated[
        int | None,
        typer.Option("--depth", help="Images that a fused ranking keeps; default: what the board uses."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the fused method, up to 80 characters; default: of all names."),
    ] = None,
    benchmark: Benchmark = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the file written as JSON: file, benchmark, method.")
    ] = False,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Fuse the rankings of several methods into one rank file.

    The name of the file written is printed.

    \b
    Example:
        cir fuse a.json b.json --method rrf --out fused.json
    """
    from submissions.rank_file.model import RankBundle, write
    from submissions.transform.fuse import fuse

    check_file(out)
    fused = fuse(files, benchmark, method=method, k=k, depth=depth, name=name)
    written = str(write(fused, out))
    if not as_json:
        echo(written)
        return
    first = fused.runs[0] if isinstance(fused, RankBundle) else fused
    answered = fused.suite if isinstance(fused, RankBundle) else fused.benchmark
    echo(as_text({"file": written, "benchmark": answered, "method": first.method.name}))
