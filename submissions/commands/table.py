"""`cir table`: methods as papers print them."""

from __future__ import annotations

from cir_datasets.commands import LoadsBenchmarks, argument, command, format_values, option
from cir_datasets.common.terminal import echo
from submissions.commands import Benchmark, TestsDifferences, method_names_of


def table_values(incomplete: str) -> list[str]:
    """Benchmarks that have a table as papers print it, and begin so.

    Example:
        >>> table_values("circ")
        ['circled', 'circo']
    """
    from submissions.papers.layout import layout_names

    return [name for name in layout_names() if name.startswith(incomplete)]


class TableOptions(TestsDifferences, LoadsBenchmarks):
    """What `cir table` takes."""

    files: list[str] | None = argument(
        None, "Rank files or bundles. Files of a suite's members are joined by the method's name."
    )
    kind: str | None = option(
        None,
        "fashioniq, cirr, circo, circled, fisd, zerosight or shapes; default: what files answer.",
        "--for",
        values=table_values,
    )
    benchmark: Benchmark = None
    names: list[str] | None = option(
        None,
        "Name of what is made, here of a row: FILE=NAME, with a file of the row; may be repeated.",
        "--name",
    )
    published: list[str] | None = option(
        None,
        "Published rows below: all, a source (cirr), a method (TIRG), a source's method (cirr:TIRG) "
        "an id of a row or your own .yaml file. A method has one row; its others are named. May be "
        "repeated.",
    )
    source: bool = option(
        True, "A column that says where published rows stand, or notes.", "--source/--no-source"
    )
    significance: bool = option(False, "Raise the letters of the methods that are significantly worse.")
    format: str = option(
        "table",
        "table (per cent; default), latex (booktabs, graphicx), markdown, csv or json (fractions).",
        values=format_values,
    )


@command
def table_command(options: TableOptions) -> None:
    """Print the table that papers print: a row a method, best bold, second underlined.

    Published rows stand below, as reported, with their source. Files of different protocols are refused.

    \b
    Example:
        cir table dress.json shirt.json toptee.json --for fashioniq --format latex
        cir table ours.json theirs.json --for cirr --significance --published cirr
    """
    from cir_datasets.common.terminal import check_format
    from cir_metrics.errors import CallError
    from submissions.formats import are_transcripts
    from submissions.papers.table import paper_table

    check_format(options.format)
    files = options.files or []
    if files and are_transcripts(files):
        raise CallError(
            f"{files[0]} is a transcript of dialogues. Fix: put transcripts side by side with cir compare."
        )
    names = method_names_of(options.names or [])
    made = options.call(paper_table, files=files, names=names, published=options.published or [])
    for method in made.methods:
        for note in method.notes():
            echo(note, err=True)
    for sentence in made.further:
        echo(sentence, err=True)
    echo(made.text(options.format))
