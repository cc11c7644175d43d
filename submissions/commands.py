"""`cir validate`, `cir score`, `cir convert` and `cir run`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from submissions.conversion import Converted

_FILE_HELP = "A rank file, a bundle, a file of the CIRR or CIRCO server, or ZeroSight results."
_BENCHMARK_HELP = (
    "Id of the benchmark or suite that the file answers; servers' files do not say it themselves."
)


def register(app: typer.Typer) -> None:
    """Add the commands of this room."""
    app.command("validate")(validate_command)
    app.command("score")(score_command)
    app.command("convert")(convert_command)
    app.command("run")(run_command)


def validate_command(
    file: Annotated[str, typer.Argument(help=_FILE_HELP)],
    benchmark: Annotated[str | None, typer.Option("--benchmark", "-b", help=_BENCHMARK_HELP)] = None,
    part: Annotated[
        bool, typer.Option("--part", help="Accept one of the CIRR server's two files alone.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check a rank file and print everything that is wrong with it; no ground truth is needed.

    The exit code is 0 where nothing refuses the file, else 1.

    \b
    Example:
        cir validate run.json
    """
    from submissions.validation import validate

    report = validate(file, benchmark, part=True if part else None)
    typer.echo(_json(report.to_dict()) if as_json else report.text())
    if not report.ok:
        raise typer.Exit(1)


def score_command(
    file: Annotated[str, typer.Argument(help=_FILE_HELP)],
    benchmark: Annotated[str | None, typer.Option("--benchmark", "-b", help=_BENCHMARK_HELP)] = None,
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
            typer.echo(_json(error.report.to_dict()))
        raise
    for note in report.notes():
        typer.echo(note, err=True)
    if per_query is not None:
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in report.per_query or []]
        written = write_bytes("".join(lines).encode(), per_query)
        typer.echo(f"{written}: {len(lines):,} lines", err=True)
    typer.echo(_json(report.to_dict()) if as_json else report.text())


def convert_command(
    files: Annotated[list[str], typer.Argument(help="One rank file, or the CIRR server's two.")],
    to: Annotated[
        str, typer.Option("--to", help="Format to write: native, cirr-server, circo-server or zerosight.")
    ],
    benchmark: Annotated[str | None, typer.Option("--benchmark", "-b", help=_BENCHMARK_HELP)] = None,
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
        typer.echo(_json(written))


def run_command(
    benchmark: Annotated[str, typer.Option("--benchmark", "-b", help="Id of the benchmark to rank.")],
    method: Annotated[str | None, typer.Option("--method", "-m", help="Name of the method.")] = None,
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
    """Rank a benchmark by methods that need no weights, and write rank files.

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
    label = benchmark.replace("/", "-")
    written = []
    for each in names:
        path = (out or Path()) / f"{each}.{label}.json" if all_baselines or out is None else out
        typer.echo(f"{each}: ranking {benchmark} ...", err=True)
        made = str(write(make_rank_file(benchmark, each, k=k), path))
        written.append({"file": made, "benchmark": benchmark, "method": each})
        if not as_json:
            typer.echo(made)
    if as_json:
        typer.echo(_json(written))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


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
