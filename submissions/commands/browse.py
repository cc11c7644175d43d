"""`cir browse`: the rankings of one or two methods, to look at."""

from __future__ import annotations

from typing import Annotated

import typer

from cir_datasets.commands.browse import PageOut, PagePictures
from cir_datasets.commands.options import DataDirAnywhere, Images, NoChecksAnywhere
from cir_datasets.common.terminal import echo
from submissions.commands.options import Benchmark


def browse_command(
    files: Annotated[
        list[str], typer.Argument(help="A rank file, or two for the same benchmark, side by side.")
    ],
    benchmark: Benchmark = None,
    out: PageOut = None,
    images: Images = None,
    pictures: PagePictures = None,
    k: Annotated[
        int,
        typer.Option(
            "--k", help="First images of a ranking, 1 to 100, that are shown; a hit has a target among them."
        ),
    ] = 10,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Write rankings as one HTML page, target and hard negatives marked; two methods side by side.

    Sessions are shown turn by turn; the last turn says who won. For a bundle, --benchmark names the member.

    \b
    Example:
        cir browse run.json
        cir browse ours.json theirs.json --out differences.html
    """
    from submissions.browse import browse_rankings

    echo(str(browse_rankings(files, benchmark, out=out, images=images, pictures=pictures, k=k)))
