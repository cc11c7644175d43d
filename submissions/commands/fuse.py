"""`cir fuse`: one rank file from several."""

from __future__ import annotations

import warnings
from pathlib import Path

from cir_datasets.commands import LoadsBenchmarks
from cir_datasets.common.options import argument, command, option
from cir_datasets.common.terminal import echo
from submissions.commands import Benchmark, KeptImages, as_text
from submissions.commands.outputs import check_file


class FuseOptions(LoadsBenchmarks):
    """What `cir fuse` takes."""

    files: list[str] = argument(..., "Two rank files or more of one benchmark, or bundles of one suite.")
    out: Path = option(..., "Where to write: a file in the native format, .json or .json.gz.", "-o")
    constant: int = option(60, "Constant, from 0: an image gets 1 / (constant + its rank).")
    k: KeptImages = None
    name: str | None = option(
        None, "Name of what is made: the method's, up to 80 characters; default: of all names."
    )
    benchmark: Benchmark = None
    as_json: bool = option(False, "Print JSON: file, benchmark, method.", "--json")
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
    from submissions.rank_file.model import RankBundle, write
    from submissions.transform.fuse import fuse

    check_file(options.out)
    fused = options.call(fuse)
    written = str(write(fused, options.out))
    if not options.as_json:
        echo(written)
        return
    first = fused.runs[0] if isinstance(fused, RankBundle) else fused
    answered = fused.suite if isinstance(fused, RankBundle) else fused.benchmark
    echo(as_text({"file": written, "benchmark": answered, "method": first.method.name}))
