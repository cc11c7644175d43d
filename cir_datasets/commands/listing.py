"""`cir datasets list`, `show` and `browse`: which benchmarks there are, and what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.commands import (
    Images,
    Json,
    JsonBenchmarks,
    Options,
    ReadsBenchmarks,
    argument,
    benchmark_values,
    command,
    option,
)
from cir_datasets.common.terminal import echo, echo_json


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
        echo_json(listed())
    else:
        echo(list_text(listed()))
    for problem in missing():
        echo(f"cir: {problem}", err=True)


class ShowOptions(Options):
    """What `cir datasets show` takes."""

    benchmark: str = argument(
        ...,
        "A benchmark's id (cirr/val), a name for all its configurations, or a suite's id.",
        metavar="ID",
        autocompletion=benchmark_values,
    )
    as_json: Json = False
    rank_file: bool = option(
        False, "Print a small example of a rank file for it instead, of a bundle for a suite.", "--format"
    )


@command
def show_benchmark(options: ShowOptions) -> None:
    """Show one benchmark: paper, licence, protocol, counts, the publisher's files, what users get wrong.

    A suite is shown with its members, how the mean is taken, and what each member needs.

    \b
    Example:
        cir datasets show cirr/val
        cir datasets show fashioniq/val
        cir datasets show cirr/val --format
    """
    from cir_datasets.audit.describe import described, described_text, example_rank_file

    if options.rank_file:
        echo(example_rank_file(options.benchmark))
    elif options.as_json:
        echo_json(described(options.benchmark))
    else:
        echo(described_text(options.benchmark))


PageOut = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE.html", help="Where to write: a page; default: named after the benchmark."
    ),
]
PagePictures = Annotated[
    str | None,
    typer.Option(
        "--pictures",
        help="embed (small copies in the page, for yourself alone), link (to your files), publisher "
        "(CIRCO's, from COCO's server) or none (ids); "
        "default: shapes are embedded, others linked where their folder is known.",
    ),
]


class QueriesPageOptions(ReadsBenchmarks):
    """What `cir datasets browse` takes."""

    benchmark: str = argument(
        ..., "A benchmark's id, such as cirr/val.", metavar="ID", autocompletion=benchmark_values
    )
    out: PageOut = None
    images: Images = None
    pictures: PagePictures = None


@command
def browse_benchmark(options: QueriesPageOptions) -> None:
    """Write a benchmark's queries or sessions as one HTML page with filters, to look at in a browser.

    \b
    Example:
        cir datasets browse shapes/val
        cir datasets browse cirr/val --images nlvr2 --out cirr.html
    """
    from cir_datasets.browse import browse_queries, check_page, page_name

    target = check_page(page_name(options.benchmark) if options.out is None else options.out)
    loaded = options.load(options.benchmark)
    echo(str(options.call(browse_queries, benchmark=loaded, out=target)))
