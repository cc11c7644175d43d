"""`cir datasets verify`."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cir_datasets.commands import Benchmarks, DataDir, JsonBenchmarks
from cir_datasets.common.terminal import echo

if TYPE_CHECKING:
    from cir_datasets.audit.verification import Result

_DEFINITIONS = "submissions.making.definitions"
"""Where encoders are; looked up by name when one is asked for, as `cir` looks up its commands."""


def verify_benchmarks(
    benchmarks: Benchmarks,
    data_dir: DataDir = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            "-e",
            help="Encoder: also replay sessions by it, are they epsilon-consistent and tau-diverse?",
        ),
    ] = None,
    diversity_encoder: Annotated[
        str | None,
        typer.Option(
            "--diversity-encoder",
            help="Encoder that compares captions; default: as for cir make circled.",
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option("--images", help="Folder of the images, for --encoder; default: below CIR_IMAGES."),
    ] = None,
    as_json: JsonBenchmarks = False,
) -> None:
    """Check hashes, counts, ids and galleries anew; report known differences from the papers, and leaks.

    The exit code is 1 where there is a fault. Known differences from the papers, images that splits share and
    repeated queries are notes.

    With --encoder, sessions are replayed as CIRCLED defines it (docs/make.md).

    \b
    Example:
        cir datasets verify cirr/val
        cir datasets verify fashioniq --json
    """
    from cir_datasets.audit.verification import Result, faults, verify
    from cir_datasets.common.progress import step_progress
    from cir_datasets.errors import SourceError
    from cir_datasets.huggingface.prepare_all import ids_of

    wanted = list(dict.fromkeys(found for name in benchmarks for found in ids_of(name)))
    found, printed, absent = [], list[Result](), 0
    with step_progress("verifying", len(wanted)) as advance:
        for benchmark_id in wanted:
            try:
                this = verify(benchmark_id, data_dir=data_dir)
                if encoder is not None:
                    result = _definitions(benchmark_id, data_dir, encoder, diversity_encoder, images)
                    this = dataclasses.replace(this, results=(*this.results, result))
                found.append(this)
            except SourceError as error:
                if len(wanted) == 1:
                    raise
                absent += 1
                echo(f"cir: {error}", err=True)
            else:
                if not as_json:
                    echo(found[-1].text(printed))
                    printed += found[-1].of_the_dataset
            advance(1)
    if as_json:
        import json

        echo(json.dumps([one.to_dict() for one in found], indent=2, ensure_ascii=False))
    if faults(found):
        raise typer.Exit(1)
    if absent:
        echo(f"cir: {absent} of {len(wanted)} benchmarks are not available, see above.", err=True)
        raise typer.Exit(2)


def _definitions(
    benchmark_id: str,
    data_dir: Path | None,
    encoder: str,
    diversity: str | None,
    images: Path | None,
) -> Result:
    """Whether the sessions of a benchmark obey CIRCLED's definitions by an encoder."""
    from cir_datasets.prepared import load

    loaded = load(benchmark_id, data_dir=data_dir)
    found: Result = import_module(_DEFINITIONS).definitions_result(loaded, encoder, diversity, images)
    return found
