"""`cir table`: methods as papers print them."""

from __future__ import annotations

from typing import Annotated

import typer

from cir_datasets.commands.options import DataDirAnywhere, NoChecksAnywhere
from cir_datasets.commands.values import format_values
from cir_datasets.common.terminal import echo
from submissions.commands.options import Benchmark
from submissions.commands.values import table_values


def table_command(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Rank files or bundles. Files of a suite's members are joined by the method's name."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--for",
            autocompletion=table_values,
            help="fashioniq, cirr, circo, circled, fisd, zerosight or shapes; default: what files answer.",
        ),
    ] = None,
    benchmark: Benchmark = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            help="Name of what is made, here of a row: FILE=NAME, with a file of the row; may be repeated.",
        ),
    ] = None,
    published: Annotated[
        list[str] | None,
        typer.Option(
            "--published",
            help="Published rows below: all, a source (cirr), a method (TIRG), a source's method (cirr:TIRG) "
            "an id of a row or your own .yaml file. A method has one row; its others are named. May be "
            "repeated.",
        ),
    ] = None,
    source: Annotated[
        bool,
        typer.Option("--source/--no-source", help="A column that says where published rows stand, or notes."),
    ] = True,
    significance: Annotated[
        bool,
        typer.Option("--significance", help="Raise the letters of the methods that are significantly worse."),
    ] = False,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            autocompletion=format_values,
            help="table (per cent; default), latex (booktabs, graphicx), markdown, csv or json (fractions).",
        ),
    ] = "table",
    draws: Annotated[int, typer.Option("--draws", help="Draws: of tests that are not exact.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", help="Seed, a whole number from 0, of the draws.")] = 2026,
    alpha: Annotated[float, typer.Option("--alpha", help="Level of significance, a share.")] = 0.05,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Print the table that papers print: a row a method, best bold, second underlined.

    Published rows stand below, as reported, with their source. Files of different protocols are refused.

    \b
    Example:
        cir table dress.json shirt.json toptee.json --for fashioniq --format latex
        cir table ours.json theirs.json --for cirr --significance --published cirr
    """
    from cir_datasets.common.tables import check_format
    from cir_metrics.errors import CallError
    from submissions.formats.kinds import are_transcripts
    from submissions.papers.table import paper_table

    check_format(format)
    if files and are_transcripts(files):
        raise CallError(
            f"{files[0]} is a transcript of dialogues. Fix: put transcripts side by side with cir compare."
        )
    made = paper_table(
        files or [],
        kind,
        benchmark=benchmark,
        names=_names(name or []),
        published=published or [],
        source=source,
        significance=significance,
        draws=draws,
        seed=seed,
        alpha=alpha,
    )
    for method in made.methods:
        for note in method.notes():
            echo(note, err=True)
    for sentence in made.further:
        echo(sentence, err=True)
    echo(made.text(format))


def _names(given: list[str]) -> dict[str, str]:
    from cir_metrics.errors import CallError

    names = {}
    for each in given:
        file, equals, name = each.rpartition("=")
        if not equals or not file:
            raise CallError(f"--name {each!r} is not FILE=NAME. Fix: write --name ours.json=Ours.")
        names[file] = name
    return names
