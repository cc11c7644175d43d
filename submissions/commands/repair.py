"""`cir repair`: a rank file without the references, outsiders and doubles in its lists."""

from __future__ import annotations

from pathlib import Path

from cir_datasets.commands import LoadsBenchmarks, argument, command, option
from cir_datasets.common.terminal import echo
from submissions.commands import FILE_HELP, Benchmark, as_text


class RepairOptions(LoadsBenchmarks):
    """What `cir repair` takes."""

    path: str = argument(..., FILE_HELP, metavar="FILE")
    out: Path = option(..., "Where to write: a file, compressed where its name ends in .gz.", "-o")
    to: str = option("native", "Format to write: native, lines or parquet, which can say what was repaired.")
    benchmark: Benchmark = None
    name: str | None = option(None, "Name of what is made: the method's in the file, up to 80 characters.")
    as_json: bool = option(False, "Print JSON: what was taken out, and what is left.", "--json")


@command
def repair_command(options: RepairOptions) -> None:
    """Take references, outsiders and doubles out of the lists of a rank file.

    References go where the protocol has them removed. Lists are not filled up: the depth that is left, and
    the metrics that can still be computed, are printed. The file says that it was repaired, and so does the
    signature of its score; no board takes it.

    \b
    Example:
        cir repair theirs.json --benchmark cirr/val --out repaired.json
    """
    from submissions.explaining.repair import repair

    done = options.call(repair)
    echo(as_text(done.to_dict()) if options.as_json else done.text())
