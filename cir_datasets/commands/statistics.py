"""`cir datasets stats`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.commands import Benchmarks, DataDir, JsonBenchmarks, NoChecks, mode_of
from cir_datasets.common.terminal import echo


def show_statistics(
    benchmarks: Benchmarks,
    data_dir: DataDir = None,
    top: Annotated[int, typer.Option(min=0, max=1000, help="Number of most frequent terms to show.")] = 20,
    plots: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also draw turns, caption lengths and frequent terms (PNG) to DIR."),
    ] = None,
    no_tags: Annotated[
        bool,
        typer.Option("--no-tags", help="Leave out parts of speech (half a minute a million words)."),
    ] = False,
    no_checks: NoChecks = False,
    as_json: JsonBenchmarks = False,
) -> None:
    """Count rows, turns, galleries and captions: lengths, type-token ratio, parts of speech, frequent terms.

    Several benchmarks make one table with a row each and a total, which counts no query twice. CAPTIONS
    counts every caption of a query or turn that has a word, EMPTY those without one. Parts of speech are
    shares of all words, tagged by HanTa's English model. docs/your_benchmark.md explains every column.
    Parts of speech and plots need the extra statistics; without it the command says how to install it.

    \b
    Example:
        cir datasets stats shapes/val
        cir datasets stats circled --plots plots
    """
    from cir_datasets.common.progress import step_progress
    from cir_datasets.huggingface.prepare_all import ids_of
    from cir_datasets.prepared import load
    from cir_datasets.statistics.measuring import measure

    wanted = list(dict.fromkeys(found for name in benchmarks for found in ids_of(name)))
    mode = mode_of(no_checks)
    parts = []
    with step_progress("counting", len(wanted)) as advance:
        for benchmark_id in wanted:
            benchmark = load(benchmark_id, data_dir=data_dir, verification_mode=mode)
            parts.append(measure(benchmark, tags=not no_tags))
            advance(1)
    if as_json:
        import json

        echo(json.dumps([part.to_dict(top) for part in parts], indent=2, ensure_ascii=False))
    else:
        from cir_datasets.statistics.tables import tables

        echo(tables(parts, top))
    if plots is not None:
        from cir_datasets.statistics.plots import write_plots

        for path in write_plots(parts, plots, top):
            echo(str(path), err=True)
