"""`cir datasets list`, `cir datasets show` and `cir datasets prepare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the commands of this room to the `cir` command."""
    datasets = typer.Typer(
        help="Benchmarks: which exist, what they ask, and preparing them for use.", no_args_is_help=True
    )
    datasets.command("list")(list_benchmarks)
    datasets.command("show")(show_benchmark)
    datasets.command("prepare")(prepare_benchmarks)
    app.add_typer(datasets, name="datasets")


def list_benchmarks(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object a benchmark.")] = False,
) -> None:
    """List the benchmarks: queries, gallery, whether the reference is ranked, main metric, licence, status.

    \b
    Example:
        cir datasets list
    """
    from cir_datasets.describe import list_text, listed

    if as_json:
        import json

        typer.echo(json.dumps(listed(), indent=2))
    else:
        typer.echo(list_text(listed()))


def show_benchmark(
    benchmark: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="A benchmark's id (cirr/val), or a name for all its configurations."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    rank_file: Annotated[
        bool, typer.Option("--format", help="Print a small example of a rank file for it instead.")
    ] = False,
) -> None:
    """Show one benchmark: paper, licence, protocol, counts, the publisher's files, what users get wrong.

    \b
    Example:
        cir datasets show cirr/val
        cir datasets show cirr/val --format
    """
    from cir_datasets.describe import described, described_text, example_rank_file

    if rank_file:
        typer.echo(example_rank_file(benchmark))
    elif as_json:
        import json

        typer.echo(json.dumps(described(benchmark), indent=2))
    else:
        typer.echo(described_text(benchmark))


def prepare_benchmarks(
    benchmarks: Annotated[
        list[str],
        typer.Argument(metavar="ID...", help="Benchmark ids, names (all configurations) or suites."),
    ],
    data_dir: Annotated[
        Path | None,
        typer.Option(help="The publisher's folder or its parent; without it CIR_DATA_HOME, then a download."),
    ] = None,
    no_checks: Annotated[
        bool, typer.Option("--no-checks", help="Do not compare the counts with the card; scores will say so.")
    ] = False,
    no_hub_cache: Annotated[
        bool, typer.Option("--no-hub-cache", help="Do not fill the Hugging Face cache for load_dataset.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Prepare again, and fetch files that the card does not pin again.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object a benchmark.")] = False,
) -> None:
    """Read, check and write benchmarks once, so that they load at once, and without a network.

    The Hugging Face cache is filled too: load_dataset("cirr", "val") then works without importing
    cir_datasets (set HF_HUB_OFFLINE=1 where the Hub cannot be reached).

    \b
    Example:
        cir datasets prepare shapes
        cir datasets prepare cirr/val --data-dir ~/data/cirr
    """
    from cir_datasets.preparing import prepare_all

    mode = "no_checks" if no_checks else "all_checks"
    done = []
    try:
        for outcome in prepare_all(
            benchmarks, data_dir, mode, force=force, hub_cache=not no_hub_cache, say=_say
        ):
            done.append(outcome.to_dict())
            if not as_json:
                typer.echo(outcome.text())
    finally:
        if as_json:
            import json

            typer.echo(json.dumps(done, indent=2))


def _say(words: str) -> None:
    typer.echo(words, err=True)
