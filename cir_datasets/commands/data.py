"""`cir datasets prepare`, `verify` and `stats`: of one benchmark, or of all that a name stands for."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cir_datasets.commands import (
    Benchmarks,
    DataDir,
    JsonBenchmarks,
    Options,
    ReadsBenchmarks,
    command,
    option,
)
from cir_datasets.common.terminal import echo, echo_json

if TYPE_CHECKING:
    from cir_datasets.audit.verification import Result


class PrepareOptions(ReadsBenchmarks):
    """What `cir datasets prepare` takes."""

    benchmarks: Benchmarks
    no_hub_cache: bool = option(False, "Do not fill the Hugging Face cache for load_dataset.")
    force: bool = option(False, "Prepare again, and fetch files that the card does not pin again.")
    as_json: JsonBenchmarks = False


@command
def prepare_benchmarks(options: PrepareOptions) -> None:
    """Read, check and write benchmarks once, so that they load at once, and without a network.

    The Hugging Face cache is filled too: load_dataset("cirr", "val") then works without importing
    cir_datasets (set HF_HUB_OFFLINE=1 where the Hub cannot be reached).

    \b
    Example:
        cir datasets prepare shapes
        cir datasets prepare cirr/val --data-dir ~/data/cirr
    """
    from cir_datasets.huggingface.prepare_all import prepare_all

    done = []
    try:
        for outcome in prepare_all(
            options.benchmarks,
            options.data_dir,
            options.verification_mode,
            force=options.force,
            hub_cache=not options.no_hub_cache,
            say=_say,
        ):
            done.append(outcome.to_dict())
            if not options.as_json:
                echo(outcome.text())
    finally:
        if options.as_json:
            echo_json(done)


def _say(words: str) -> None:
    echo(words, err=True)


_DEFINITIONS = "submissions.making.definitions"
"""Where encoders are; looked up by name when one is asked for, as `cir` looks up its commands."""


class VerifyOptions(Options):
    """What `cir datasets verify` takes."""

    benchmarks: Benchmarks
    data_dir: DataDir = None
    encoder: str | None = option(
        None, "Encoder: also replay sessions by it, are they epsilon-consistent and tau-diverse?", "-e"
    )
    diversity_encoder: str | None = option(
        None, "Encoder that compares captions; default: as for cir make circled."
    )
    images: Path | None = option(None, "Folder of the images, for --encoder; default: below CIR_IMAGES.")
    as_json: JsonBenchmarks = False


@command
def verify_benchmarks(options: VerifyOptions) -> None:
    """Check hashes, counts, ids and galleries anew; report known differences from the papers, and leaks.

    The exit code is 1 where there is a fault. Known differences from the papers, images that splits share and
    repeated queries are notes.

    With --encoder, sessions are replayed as CIRCLED defines it (docs/make.md).

    \b
    Example:
        cir datasets verify cirr/val
        cir datasets verify fashioniq --json
    """
    from cir_datasets.audit.verification import Result, verify
    from cir_datasets.common.progress import step_progress
    from cir_datasets.errors import SourceError
    from cir_datasets.registry import ids_of

    benchmarks = ids_of(*options.benchmarks)
    found, printed, absent = [], list[Result](), 0
    with step_progress("verifying", len(benchmarks)) as advance:
        for benchmark_id in benchmarks:
            try:
                this = verify(benchmark_id, data_dir=options.data_dir)
                if options.encoder is not None:
                    result = _definitions(benchmark_id, options)
                    this = dataclasses.replace(this, results=(*this.results, result))
                found.append(this)
            except SourceError as error:
                if len(benchmarks) == 1:
                    raise
                absent += 1
                echo(f"cir: {error}", err=True)
            else:
                if not options.as_json:
                    echo(found[-1].text(printed))
                    printed += found[-1].of_the_dataset
            advance(1)
    if options.as_json:
        echo_json([one.to_dict() for one in found], ascii_only=False)
    if not all(one.ok for one in found):
        raise typer.Exit(1)
    if absent:
        echo(f"cir: {absent} of {len(benchmarks)} benchmarks are not available, see above.", err=True)
        raise typer.Exit(2)


def _definitions(benchmark_id: str, options: VerifyOptions) -> Result:
    """Whether the sessions of a benchmark obey CIRCLED's definitions by an encoder."""
    from cir_datasets.prepared import load

    loaded = load(benchmark_id, data_dir=options.data_dir)
    result: Result = import_module(_DEFINITIONS).definitions_result(
        loaded, options.encoder, options.diversity_encoder, options.images
    )
    return result


class StatisticsOptions(ReadsBenchmarks):
    """What `cir datasets stats` takes."""

    benchmarks: Benchmarks
    top: int = option(20, "Number of most frequent terms to show.", min=0, max=1000)
    plots: Path | None = option(
        None, "Also draw turns, caption lengths and frequent terms (PNG) to DIR.", metavar="DIR"
    )
    no_tags: bool = option(False, "Leave out parts of speech (half a minute a million words).")
    as_json: JsonBenchmarks = False


@command
def show_statistics(options: StatisticsOptions) -> None:
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
    from cir_datasets.registry import ids_of
    from cir_datasets.statistics.counts import measure

    benchmarks = ids_of(*options.benchmarks)
    parts = []
    with step_progress("counting", len(benchmarks)) as advance:
        for benchmark_id in benchmarks:
            parts.append(measure(options.load(benchmark_id), tags=not options.no_tags))
            advance(1)
    if options.as_json:
        echo_json([part.to_dict(options.top) for part in parts], ascii_only=False)
    else:
        from cir_datasets.statistics.report import tables

        echo(tables(parts, options.top))
    if options.plots is not None:
        from cir_datasets.statistics.report import write_plots

        for path in write_plots(parts, options.plots, options.top):
            echo(str(path), err=True)
