"""What commands that write rank files take, look at before the work, and print of what is written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import LoadsBenchmarks, option
from cir_datasets.common.terminal import echo
from cir_metrics.errors import CallError
from submissions.commands import as_text

if TYPE_CHECKING:
    from submissions.rank_file.model import RankBundle, RankFile


class WritesRankFile(LoadsBenchmarks):
    """What a command takes that makes one rank file, or of a suite one bundle."""

    out: Path = option(..., "Where to write: a file, .json or .json.gz.", "-o")
    k: int | None = option(
        None, "First images of a ranking, 1 to 1,000, that are kept; default: what the board uses."
    )
    as_json: bool = option(False, "Print JSON: file, benchmark, method.", "--json")

    def write(self, made: RankFile | RankBundle) -> str:
        """Write it, and print its name, or what it is; the name."""
        return print_made(made, self.out, as_json=self.as_json)


def print_made(made: RankFile | RankBundle, out: Path, *, as_json: bool) -> str:
    """Write a rank file or bundle, and print its name, or what it is; the name."""
    from submissions.rank_file.model import RankBundle, write

    file = str(write(made, out))
    first = made.runs[0] if isinstance(made, RankBundle) else made
    answered = made.suite if isinstance(made, RankBundle) else made.benchmark
    described = {"file": file, "benchmark": answered, "method": first.method.name}
    echo(as_text(described) if as_json else file)
    return file


def check_ending(out: Path) -> None:
    """Refuse a name that says another format than the one that is written.

    Raises:
        CallError: it does.

    Example:
        >>> check_ending(Path("fused.json.gz"))
    """
    ending = Path(out.stem).suffix if out.suffix.lower() == ".gz" else out.suffix
    if ending.lower() not in ("", ".json"):
        raise CallError(
            f"--out {out}: the native format is written, as .json or .json.gz. "
            "Fix: name it so; cir convert then writes every other format."
        )


def check_file(out: Path) -> None:
    """Refuse a name under which no rank file can be written.

    Raises:
        CallError: it is a folder's, says another format, or lies where nothing can be written.
    """
    if out.is_dir():
        raise CallError(f"--out {out} is a folder. Fix: name a file, such as {out / 'run.json'}.")
    check_ending(out)
    check_folder(out.parent)


def check_folder(folder: Path, option: str = "--out") -> None:
    """Refuse a folder in which no files can be written.

    Args:
        folder: where they would lie.
        option: which names it.

    Raises:
        CallError: it is a file, lies below one, or may not be written to.
    """
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise CallError(f"{option}: {there} is a file, not a folder. Fix: name a folder, or a file in one.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise CallError(f"{option}: the folder {there} cannot be written to. Fix: name another one.")


def warn_of_short_rankings(benchmark: str, k: int | None) -> bool:
    """Say before the work that a file's rankings will be shorter than what the board's metrics use.

    Args:
        benchmark: id of a benchmark or suite.
        k: images kept of each ranking; None is as many as are used.

    Returns:
        Whether they will be.
    """
    from cir_datasets import load
    from cir_datasets.registry import members_of
    from submissions.rank_file.benchmarks import board_depth

    if k is None:
        return False
    short = False
    for name in members_of(benchmark):
        wanted = board_depth(load(name)).required
        if 1 <= k < wanted:
            short = True
            echo(
                f"--k {k}: the metrics of {name} use {wanted} images a ranking, and cir score refuses "
                "shorter rankings. Leave --k out for as many as are used.",
                err=True,
            )
    return short
