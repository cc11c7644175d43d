"""`cir datasets publish`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.commands import Benchmarks, DataDir, JsonBenchmarks, NoChecks, mode_of
from cir_datasets.common.terminal import echo


def publish_benchmarks(
    benchmarks: Benchmarks,
    to: Annotated[
        Path, typer.Option(metavar="DIR", help="Where to: a folder; each benchmark gets a folder in it.")
    ],
    push: Annotated[
        str | None,
        typer.Option(metavar="ORG/NAME", help="Push to this repository on the Hub, in one commit."),
    ] = None,
    may_copy: Annotated[
        str | None,
        typer.Option(
            "--i-may-copy",
            metavar="LICENCE",
            help="You may publish a copy: the licence's words, where it does not allow every copy.",
        ),
    ] = None,
    private: Annotated[
        bool | None,
        typer.Option(
            "--private/--public",
            help="Make what is new private: the repository; default: that of a folder of your own is.",
        ),
    ] = None,
    even_private: Annotated[
        bool,
        typer.Option(
            "--even-private", help="Push although the card of a benchmark of yours says private: true."
        ),
    ] = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Go on without what is missing; it is listed.")
    ] = False,
    remove_others: Annotated[
        bool,
        typer.Option(
            "--remove-others",
            help="Remove configurations that are published there and are not named or not available now.",
        ),
    ] = False,
    data_dir: DataDir = None,
    no_checks: NoChecks = False,
    as_json: JsonBenchmarks = False,
) -> None:
    """Write benchmarks as datasets for the Hub: Parquet, a dataset card, Croissant metadata.

    DIR/NAME then loads anywhere: load_dataset("DIR/circled", "cirr_val"). Images are never part of it.

    \b
    Example:
        cir datasets publish shapes --to published
        cir datasets publish circo --to published --push me/circo --i-may-copy "CC BY-NC 4.0"
    """
    from cir_datasets.publishing.publish import publish

    done = publish(
        benchmarks,
        to,
        data_dir=data_dir,
        verification_mode=mode_of(no_checks),
        skip_missing=skip_missing,
        push_to=push,
        may_copy=may_copy,
        private=private,
        even_private=even_private,
        remove_others=remove_others,
    )
    for one in done:
        for benchmark_id, reason in one.skipped.items():
            echo(f"cir: left out {benchmark_id}: {reason}", err=True)
        for words in (*one.notes, *(f"mlcroissant: {warning}" for warning in one.warnings)):
            echo(f"cir: {one.name}: {words}", err=True)
    if as_json:
        import json

        echo(json.dumps([one.to_dict() for one in done], indent=2))
    else:
        for one in done:
            echo(one.text())
