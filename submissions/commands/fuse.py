"""`cir fuse`: one rank file from several."""

from __future__ import annotations

import warnings

from cir_datasets.commands import argument, command, option
from submissions.commands import Benchmark
from submissions.commands.outputs import WritesRankFile, check_file


class FuseOptions(WritesRankFile):
    """What `cir fuse` takes."""

    files: list[str] = argument(..., "Two rank files or more of one benchmark, or bundles of one suite.")
    constant: int = option(60, "Constant, from 0: an image gets 1 / (constant + its rank).")
    name: str | None = option(
        None, "Name of what is made: the method's, up to 80 characters; default: of all names."
    )
    benchmark: Benchmark = None
    by: str | None = option(None, "Deprecated: there is one way to fuse.", hidden=True)

    def __post_init__(self) -> None:
        """Warn of what goes."""
        if self.by is not None:
            words = "--by is deprecated and goes with 0.2: there is one way to fuse. Fix: leave it out."
            warnings.warn(words, FutureWarning, stacklevel=2)


@command
def fuse_command(options: FuseOptions) -> None:
    """Fuse the rankings of several methods into one rank file.

    The name of the file written is printed.

    \b
    Example:
        cir fuse a.json b.json --out fused.json
    """
    from submissions.transform.fuse import fuse

    check_file(options.out)
    options.write(options.call(fuse))
