"""`cir browse`: the rankings of one or two methods, to look at."""

from __future__ import annotations

from cir_datasets.commands import Images, LoadsBenchmarks, argument, command, option
from cir_datasets.commands.listing import PageOut, PagePictures
from cir_datasets.common.terminal import echo
from submissions.commands import Benchmark


class BrowseOptions(LoadsBenchmarks):
    """What `cir browse` takes."""

    files: list[str] = argument(..., "A rank file, or two for the same benchmark, side by side.")
    benchmark: Benchmark = None
    out: PageOut = None
    images: Images = None
    pictures: PagePictures = None
    k: int = option(10, "First images of a ranking, 1 to 100, that are shown; a hit has a target among them.")


@command
def browse_command(options: BrowseOptions) -> None:
    """Write rankings as one HTML page, target and hard negatives marked; two methods side by side.

    Sessions are shown turn by turn; the last turn says who won. For a bundle, --benchmark names the member.

    \b
    Example:
        cir browse run.json
        cir browse ours.json theirs.json --out differences.html
    """
    from submissions.report.ranking_page import browse_rankings

    echo(str(options.call(browse_rankings)))
