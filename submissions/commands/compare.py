"""`cir compare`: methods side by side, and which differences are more than chance."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import argument, command, metric_values, option
from cir_datasets.common.terminal import echo
from cir_metrics.errors import CallError
from submissions.commands import Benchmark, DrawsPlots, TestsDifferences, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from submissions.comparison.result import Comparison


class CompareOptions(TestsDifferences, DrawsPlots):
    """What `cir compare` takes."""

    files: list[str] = argument(
        ..., "Two rank files or bundles, or more, for one benchmark or suite; or transcripts."
    )
    benchmark: Benchmark = None
    metrics: list[str] | None = option(
        None,
        "Metric: one to compare; may be repeated; default: all of the board.",
        "--metric",
        values=metric_values,
    )
    joined: bool = option(
        False, "Compare single queries with sessions that were made of them, a file of each."
    )
    plot: Path | None = option(
        None, "Also draw a picture, .png, .svg or .pdf: the differences with intervals."
    )
    flips: Path | None = option(None, "Also write one JSON object a flipped query to this .jsonl file.")


@command
def compare_command(options: CompareOptions) -> None:
    """Compare methods on one benchmark: paired differences, intervals, tests and flipped queries.

    Files whose comparability keys differ are refused with exit code 1. Transcripts of cir multiround or cir
    play are compared round by round over the sessions that all have, whatever their users and settings.

    \b
    Example:
        cir compare ours.json theirs.json baseline.json --format latex --plot differences.svg
        cir compare human.jsonl simulated.jsonl
        cir compare single.json sessions.json --joined
    """
    from submissions.comparison.comparing import compare
    from submissions.formats import are_transcripts

    files = options.files
    if len(files) > 1 and len(set(map(os.path.realpath, files))) == 1:
        echo(f"{files[0]} is compared with itself, and does not differ. Fix: name another file.", err=True)
    chosen: Callable[..., Comparison] = compare
    if options.joined:
        if options.benchmark is not None:
            raise CallError("--joined compares files of two benchmarks. Fix: leave --benchmark out.")
        from submissions.comparison.joined import compare_joined as chosen
    elif are_transcripts(files):
        from submissions.transcripts.comparing import compare_transcripts as chosen
    found = options.call(chosen, metrics=options.metrics or None)
    if options.plot is not None:
        echo(f"{found.plot(options.plot)}", err=True)
    if options.flips is not None:
        write_rows(list(found.flipped()), options.flips)
    echo(found.text(options.printed))
