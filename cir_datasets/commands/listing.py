"""`cir datasets list`, `show` and `browse`: which benchmarks there are, and what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.commands import DataDir, Images, Json, JsonBenchmarks, NoChecks, benchmark_values, mode_of
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
        echo_json(described(benchmark))
    else:
        echo(described_text(benchmark))


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


def browse_benchmark(
    benchmark: Annotated[
        str,
        typer.Argument(
            metavar="ID", autocompletion=benchmark_values, help="A benchmark's id, such as cirr/val."
        ),
    ],
    out: PageOut = None,
    images: Images = None,
    pictures: PagePictures = None,
    data_dir: DataDir = None,
    no_checks: NoChecks = False,
) -> None:
    """Write a benchmark's queries or sessions as one HTML page with filters, to look at in a browser.

    \b
    Example:
        cir datasets browse shapes/val
        cir datasets browse cirr/val --images nlvr2 --out cirr.html
    """
    from cir_datasets.browse import browse_queries, check_page, page_name
    from cir_datasets.prepared import load

    target = check_page(page_name(benchmark) if out is None else out)
    loaded = load(benchmark, data_dir=data_dir, verification_mode=mode_of(no_checks))
    echo(str(browse_queries(loaded, target, images=images, pictures=pictures)))
