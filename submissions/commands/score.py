"""`cir score`: the numbers of a rank file, or of transcripts."""

from __future__ import annotations

import json
from pathlib import Path

from cir_datasets.commands.options import PrintsTables, metric_values
from cir_datasets.common.counts import counted
from cir_datasets.common.options import argument, command, option
from cir_datasets.common.terminal import echo
from submissions.commands.options import Benchmark, Resamples, plot_file
from submissions.commands.words import FILE_HELP, as_text


class ScoreOptions(Resamples, PrintsTables):
    """What `cir score` takes."""

    files: list[str] = argument(
        ..., f"{FILE_HELP} Or one transcript of cir multiround, or several side by side."
    )
    benchmark: Benchmark = None
    metrics: list[str] | None = option(
        None,
        "Metric: one to score, such as recall@20 or, with a variant, "
        "pnr_map@10:released_code; may be repeated; default: all of the board.",
        "--metric",
        values=metric_values,
    )
    plot: Path | None = option(
        None,
        "Also draw a picture, .png or .svg: Hits@K by turn, metrics by aspect, or the metrics.",
        callback=plot_file,
    )
    intervals: bool = option(
        False, "Also give 95 % bootstrap intervals over queries or sessions, never turns."
    )
    per_query: Path | None = option(
        None, "Also write one JSON object a query (fractions) to this .jsonl file."
    )
    allow_missing: bool = option(
        False,
        "Go on where something is missing: queries and turns without a ranking count as "
        "misses; never submittable.",
    )


@command
def score_command(options: ScoreOptions) -> None:
    """Validate a rank file and print its scores beside chance and baselines, by aspect and by turn.

    Every number has its signature. Of transcripts the numbers are by round. With --json a refused file
    prints what cir validate --json prints, and the exit code is 1.

    \b
    Example:
        cir score run.json --json
        cir score run.json --metric recall@20 --format latex --plot run.svg
        cir score average.jsonl latest.jsonl --intervals --plot rounds.svg
    """
    from cir_metrics.errors import CallError
    from submissions.formats.kinds import are_transcripts
    from submissions.rank_file.findings import RefusedError
    from submissions.rank_file.model import write_bytes
    from submissions.report import full_report
    from submissions.scoring import score

    if are_transcripts(options.files):
        from submissions.commands.score_transcripts import score_transcripts

        if options.per_query is not None:
            raise CallError("--per-query is for rank files. Fix: leave it out.")
        resampled = (options.draws, options.seed) if options.intervals else None
        score_transcripts(
            options.files,
            options.benchmark,
            options.printed,
            resampled,
            options.plot,
            allow_missing=options.allow_missing,
            metrics=options.metrics or (),
        )
        return
    if len(options.files) > 1:
        raise CallError("several rank files are put side by side by cir compare. Fix: call that.")
    (file,) = options.files
    try:
        scored = options.call(
            score, file=file, per_query=options.per_query is not None, metrics=options.metrics or ()
        )
    except RefusedError as error:
        if options.printed == "json":
            echo(as_text(error.report.to_dict()))
        raise
    bands = None
    if options.intervals:
        from submissions.scoring.intervals import intervals

        bands = options.call(intervals, report=scored)
    report = full_report(scored, bands)
    if options.metrics:
        from submissions.report.selection import selected

        report = selected(report, options.metrics)
    for note in scored.notes():
        echo(note, err=True)
    if options.per_query is not None:
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in report.score.per_query or []]
        written = write_bytes("".join(lines).encode(), options.per_query)
        echo(f"{written}: {counted(len(lines), 'line')}", err=True)
    if options.plot is not None:
        echo(f"{report.plot(options.plot)}: drawn", err=True)
    echo(report.render(options.printed))
