"""`cir compare`: methods side by side, and which differences are more than chance."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.commands.options import DataDirAnywhere, Format, JsonFormat, NoChecksAnywhere
from cir_datasets.commands.values import metric_values
from cir_datasets.common.counts import counted
from cir_datasets.common.terminal import echo
from submissions.commands.options import Benchmark, plot_file


def compare_command(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Two rank files or bundles, or more, for one benchmark or suite; or transcripts."
        ),
    ],
    benchmark: Benchmark = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            autocompletion=metric_values,
            help="Metric: one to compare; may be repeated; default: all of the board.",
        ),
    ] = None,
    format: Format = None,
    as_json: JsonFormat = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            callback=plot_file,
            help="Also draw a picture, .png or .svg: the differences with intervals.",
        ),
    ] = None,
    flips: Annotated[
        Path | None,
        typer.Option("--flips", help="Also write one JSON object a flipped query to this .jsonl file."),
    ] = None,
    draws: Annotated[
        int, typer.Option("--draws", help="Draws: of the bootstrap and of tests that are not exact.")
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", help="Seed, a whole number from 0, of the draws.")] = 2026,
    alpha: Annotated[
        float, typer.Option("--alpha", help="Level of significance, a share; intervals hold 1 - alpha.")
    ] = 0.05,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Compare methods on one benchmark: paired differences, intervals, tests and flipped queries.

    Files whose comparability keys differ are refused with exit code 1. Transcripts of cir multiround or cir
    play are compared round by round over the sessions that all have, whatever their users and settings.

    \b
    Example:
        cir compare ours.json theirs.json baseline.json --format latex --plot differences.svg
        cir compare human.jsonl simulated.jsonl
    """
    from cir_datasets.common.tables import check_format
    from cir_metrics.errors import CallError
    from submissions.comparison.comparing import compare
    from submissions.formats.kinds import are_transcripts
    from submissions.rank_file.model import write_bytes

    if as_json and format not in (None, "json"):
        raise CallError(f"--json and --format {format} ask for two formats. Fix: leave one of them out.")
    if len(files) > 1 and len(set(map(os.path.realpath, files))) == 1:
        echo(f"{files[0]} is compared with itself, and does not differ. Fix: name another file.", err=True)
    wanted = "json" if as_json else format or "table"
    check_format(wanted)
    if are_transcripts(files):
        from submissions.transcripts.comparing import compare_transcripts

        if flips is not None:
            raise CallError("--flips is for rank files. Fix: leave it out.")
        talks = compare_transcripts(
            files, benchmark, metrics=metric or None, draws=draws, seed=seed, alpha=alpha
        )
        if plot is not None:
            echo(f"{talks.comparison.plot(plot)}", err=True)
        echo(talks.text(wanted))
        return
    found = compare(files, benchmark, metrics=metric or None, draws=draws, seed=seed, alpha=alpha)
    if plot is not None:
        echo(f"{found.plot(plot)}", err=True)
    if flips is not None:
        lines = [json.dumps(flip, ensure_ascii=False) + "\n" for flip in found.flipped()]
        echo(f"{write_bytes(''.join(lines).encode(), flips)}: {counted(len(lines), 'line')}", err=True)
    echo(found.text(wanted))
