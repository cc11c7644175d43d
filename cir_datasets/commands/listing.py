"""`cir datasets list` and `cir datasets show`."""

from __future__ import annotations

from typing import Annotated

import typer

from cir_datasets.commands import Json, JsonBenchmarks, benchmark_values
from cir_datasets.common.terminal import echo


def list_benchmarks(
    as_json: JsonBenchmarks = False,
) -> None:
    """List the benchmarks (queries, gallery, turns, reference, main metric, licence, status) and the suites.

    \b
    Example:
        cir datasets list
    """
    from cir_datasets.audit.describe import list_text, listed
    from cir_datasets.registry.folders import missing

    if as_json:
        import json

        echo(json.dumps(listed(), indent=2))
    else:
        echo(list_text(listed()))
    for problem in missing():
        echo(f"cir: {problem}", err=True)


def show_benchmark(
    benchmark: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            autocompletion=benchmark_values,
            help="A benchmark's id (cirr/val), a name for all its configurations, or a suite's id.",
        ),
    ],
    as_json: Json = False,
    rank_file: Annotated[
        bool,
        typer.Option(
            "--format", help="Print a small example of a rank file for it instead, of a bundle for a suite."
        ),
    ] = False,
) -> None:
    """Show one benchmark: paper, licence, protocol, counts, the publisher's files, what users get wrong.

    A suite is shown with its members, how the mean is taken, and what each member needs.

    \b
    Example:
        cir datasets show cirr/val
        cir datasets show fashioniq/val
        cir datasets show cirr/val --format
    """
    from cir_datasets.audit.describe import described, described_text, example_rank_file

    if rank_file:
        echo(example_rank_file(benchmark))
    elif as_json:
        import json

        echo(json.dumps(described(benchmark), indent=2))
    else:
        echo(described_text(benchmark))
