"""`cir run`: rank files made by methods."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from submissions.commands.words import as_text


def run_command(
    benchmark: Annotated[str, typer.Option("--benchmark", "-b", help="Id of the benchmark to rank.")],
    method: Annotated[str | None, typer.Option("--method", "-m", help="Name of the method.")] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            "-e",
            help="Encoder: a name on the Hub, a folder, shapes (the shipped one), or pixels (no weights).",
        ),
    ] = None,
    all_baselines: Annotated[
        bool,
        typer.Option("--all-baselines", help="Run every weight-free method that can rank this benchmark."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write; with --all-baselines the folder for METHOD.NAME-CONFIG.json.",
        ),
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", help="Images a ranking; default: what the board's metrics use.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the files written as JSON: file, benchmark, method.")
    ] = False,
) -> None:
    """Rank a benchmark by a method, or by every one that needs no weights, and write rank files.

    The names of the files written are printed, one a line.

    \b
    Example:
        cir run --benchmark shapes/val --method random --out run.json
    """
    from cir_metrics.errors import CallError
    from submissions.methods import make_rank_file, method_names, methods_for
    from submissions.rank_file import write

    if (method is None) == (not all_baselines):
        known = ", ".join(method_names())
        raise CallError(
            f"name one method or ask for all. Fix: add --method NAME ({known}) or --all-baselines."
        )
    names = [method] if method is not None else methods_for(benchmark)
    chosen = encoder if method is not None else "pixels"
    label = benchmark.replace("/", "-")
    written = []
    for each in names:
        path = (out or Path()) / f"{each}.{label}.json" if all_baselines or out is None else out
        typer.echo(f"{each}: ranking {benchmark} ...", err=True)
        made = str(write(make_rank_file(benchmark, each, encoder=chosen, k=k), path))
        written.append({"file": made, "benchmark": benchmark, "method": each})
        if not as_json:
            typer.echo(made)
    if as_json:
        typer.echo(as_text(written))
