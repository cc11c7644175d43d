"""`cir datasets browse`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.commands import DataDir, Images, NoChecks, benchmark_values, mode_of
from cir_datasets.common.terminal import echo

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
