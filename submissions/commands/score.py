"""`cir score`: the numbers of a rank file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from submissions.commands.words import BENCHMARK_HELP, FILE_HELP, as_text


def score_command(
    file: Annotated[str, typer.Argument(help=FILE_HELP)],
    benchmark: Annotated[str | None, typer.Option("--benchmark", "-b", help=BENCHMARK_HELP)] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON with fractions instead of a table in per cent.")
    ] = False,
    per_query: Annotated[
        Path | None,
        typer.Option(
            "--per-query", help="Also write one JSON object a query (fractions) to this .jsonl file."
        ),
    ] = None,
    allow_missing: Annotated[
        bool,
        typer.Option(
            "--allow-missing",
            help="Count queries and turns without a ranking as misses; never submittable.",
        ),
    ] = False,
) -> None:
    """Validate a rank file and print its board's metrics, each with its signature.

    With --json a refused file prints what cir validate --json prints, and the exit code is 1.

    \b
    Example:
        cir score run.json --json
    """
    from submissions.errors import RefusedError
    from submissions.rank_file import write_bytes
    from submissions.scoring import score

    try:
        report = score(file, benchmark, allow_missing=allow_missing, per_query=per_query is not None)
    except RefusedError as error:
        if as_json:
            typer.echo(as_text(error.report.to_dict()))
        raise
    for note in report.notes():
        typer.echo(note, err=True)
    if per_query is not None:
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in report.per_query or []]
        written = write_bytes("".join(lines).encode(), per_query)
        typer.echo(f"{written}: {len(lines):,} lines", err=True)
    typer.echo(as_text(report.to_dict()) if as_json else report.text())
