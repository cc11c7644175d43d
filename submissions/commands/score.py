"""`cir score`: the numbers of a rank file, or of transcripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cir_datasets.commands.options import DataDirAnywhere, Format, JsonFormat, NoChecksAnywhere
from cir_datasets.commands.values import metric_values
from cir_datasets.common.counts import counted
from cir_datasets.common.terminal import echo
from submissions.commands.options import Benchmark, plot_file
from submissions.commands.words import FILE_HELP, as_text

if TYPE_CHECKING:
    from submissions.scoring.intervals import Intervals
    from submissions.scoring.score_report import ScoreReport


def score_command(
    files: Annotated[
        list[str],
        typer.Argument(help=f"{FILE_HELP} Or one transcript of cir multiround, or several side by side."),
    ],
    benchmark: Benchmark = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            autocompletion=metric_values,
            help="Metric: one to score, such as recall@20 or, with a variant, "
            "pnr_map@10:released_code; may be repeated; default: all of the board.",
        ),
    ] = None,
    format: Format = None,
    as_json: JsonFormat = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            callback=plot_file,
            help="Also draw a picture, .png or .svg: Hits@K by turn, metrics by aspect, or the metrics.",
        ),
    ] = None,
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals", help="Also give 95 % bootstrap intervals over queries or sessions, never turns."
        ),
    ] = False,
    draws: Annotated[
        int, typer.Option("--draws", help="Draws: of the bootstrap, with --intervals.")
    ] = 10_000,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed, a whole number from 0, of the draws of --intervals.")
    ] = 2026,
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
            help="Go on where something is missing: queries and turns without a ranking count as "
            "misses; never submittable.",
        ),
    ] = False,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Validate a rank file and print its scores beside chance and baselines, by aspect and by turn.

    Every number has its signature. Of transcripts the numbers are by round. With --json a refused file
    prints what cir validate --json prints, and the exit code is 1.

    \b
    Example:
        cir score run.json --json
        cir score run.json --metric recall@20 --format latex --plot run.svg
        cir score average.jsonl latest.jsonl --intervals --plot rounds.svg
    """
    from cir_datasets.common.tables import check_format
    from cir_metrics.errors import CallError
    from submissions.formats.kinds import are_transcripts
    from submissions.rank_file.findings import RefusedError
    from submissions.rank_file.model import write_bytes
    from submissions.report import full_report
    from submissions.scoring import score

    if as_json and format not in (None, "json"):
        raise CallError(f"--json and --format {format} ask for two formats. Fix: leave one of them out.")
    wanted = "json" if as_json else format or "table"
    check_format(wanted)
    if are_transcripts(files):
        from submissions.commands.score_transcripts import score_transcripts

        if per_query is not None:
            raise CallError("--per-query is for rank files. Fix: leave it out.")
        resampled = (draws, seed) if intervals else None
        score_transcripts(
            files, benchmark, wanted, resampled, plot, allow_missing=allow_missing, metrics=metric or ()
        )
        return
    if len(files) > 1:
        raise CallError("several rank files are put side by side by cir compare. Fix: call that.")
    (file,) = files
    try:
        scored = score(
            file,
            benchmark,
            allow_missing=allow_missing,
            per_query=per_query is not None,
            metrics=metric or (),
        )
    except RefusedError as error:
        if wanted == "json":
            echo(as_text(error.report.to_dict()))
        raise
    report = full_report(scored, _intervals(scored, draws, seed) if intervals else None)
    if metric:
        from submissions.report.selection import selected

        report = selected(report, metric)
    for note in scored.notes():
        echo(note, err=True)
    if per_query is not None:
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in report.score.per_query or []]
        written = write_bytes("".join(lines).encode(), per_query)
        echo(f"{written}: {counted(len(lines), 'line')}", err=True)
    if plot is not None:
        echo(f"{report.plot(plot)}: drawn", err=True)
    echo(report.render(wanted))


def _intervals(scored: ScoreReport, draws: int, seed: int) -> Intervals:
    from submissions.scoring.intervals import intervals

    return intervals(scored, draws=draws, seed=seed)
