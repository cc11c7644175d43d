"""`cir datasets ...`: one module a subject, each free of heavy imports.

Here stand the options that several commands have in the same words, what shells offer for them, and how a
file is written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.common.options import Options, option
from cir_datasets.common.terminal import echo


def benchmark_values(incomplete: str) -> list[str]:
    """Ids of benchmarks and suites that begin so.

    Args:
        incomplete: what was typed.

    Example:
        >>> benchmark_values("cirr/t")
        ['cirr/test1', 'cirr/train']
    """
    from cir_datasets.registry import benchmark_ids
    from cir_datasets.registry.suites import suite_ids

    return sorted(name for name in {*benchmark_ids(), *suite_ids()} if name.startswith(incomplete))


def metric_values(context: typer.Context, incomplete: str) -> list[str]:
    """Metrics that begin so: of the benchmark that was named, or of all.

    Args:
        context: the command with the options that were read so far.
        incomplete: what was typed.
    """
    from cir_datasets.registry import benchmark_ids, spec

    named = context.params.get("benchmark")
    known = benchmark_ids()
    metrics = {metric for name in ([named] if named in known else known) for metric in spec(name).metrics}
    return sorted(metric for metric in metrics if metric.startswith(incomplete))


def format_values(incomplete: str) -> list[str]:
    """Formats of tables that begin so.

    Example:
        >>> format_values("l")
        ['latex']
    """
    from cir_datasets.common.tables import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def _set_for_the_call(context: typer.Context, variable: str, value: str) -> None:
    """Set an environment variable until the command ends, for all that it calls."""
    before = os.environ.get(variable)
    os.environ[variable] = value

    def put_back() -> None:
        os.environ.pop(variable)
        if before is not None:
            os.environ[variable] = before

    context.call_on_close(put_back)


def _without_checks(context: typer.Context, wanted: bool) -> bool:
    from cir_datasets.prepared import CHECKS_VARIABLE

    if wanted:
        _set_for_the_call(context, CHECKS_VARIABLE, "no_checks")
    return wanted


def _data_from(context: typer.Context, folder: Path | None) -> Path | None:
    from cir_datasets.common.paths import DATA_VARIABLE
    from cir_datasets.errors import SourceError

    if folder is not None:
        if not folder.is_dir():
            raise SourceError(
                f"--data-dir {folder}: no such folder. Fix: name the publisher's folder, or its parent."
            )
        _check_holds_some_file(folder)
        _set_for_the_call(context, DATA_VARIABLE, str(folder.absolute()))
    return folder


def _check_holds_some_file(folder: Path) -> None:
    """Refuse a folder without any publisher's file: else what was prepared would be taken unsaid."""
    from cir_datasets.errors import SourceError
    from cir_datasets.registry import benchmark_ids, spec

    configs = [spec(benchmark).config for benchmark in benchmark_ids()]
    files = dict.fromkeys(name for config in configs for name in (*config.files, *config.gallery_files))
    places = [folder, *(place for place in folder.glob("*/") if os.access(place, os.X_OK))]
    if not any((place / name).is_file() for place in places for name in files):
        raise SourceError(
            f"--data-dir {folder}: no publisher's file of any benchmark is in it, nor in a folder in it, "
            "such as captions/cap.rc2.val.json of cirr/val. Fix: name the folder of the publisher's files or "
            "its parent, or leave --data-dir out."
        )


_DATA_DIR = "Folder of the publisher's files, or its parent; without it CIR_DATA_HOME, then a download."
_NO_CHECKS = (
    "Take a benchmark whose counts are not the card's, which scores then say; so does "
    "CIR_VERIFICATION_MODE=no_checks."
)

Benchmarks = Annotated[
    list[str],
    typer.Argument(
        metavar="ID...",
        autocompletion=benchmark_values,
        help="Benchmark ids, names (all configurations) or suites.",
    ),
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help=_DATA_DIR)]
NoChecks = Annotated[bool, typer.Option("--no-checks", help=_NO_CHECKS)]
DataDirAnywhere = Annotated[Path | None, typer.Option("--data-dir", callback=_data_from, help=_DATA_DIR)]
"""Of commands that load benchmarks by way of other rooms, which hand no folder on."""
NoChecksAnywhere = Annotated[bool, typer.Option("--no-checks", callback=_without_checks, help=_NO_CHECKS)]
"""Of commands that load benchmarks by way of other rooms, which hand no mode on."""


class LoadsBenchmarks(Options):
    """Of commands that load benchmarks by way of other rooms, which hand no folder and no mode on."""

    data_dir: DataDirAnywhere = None
    no_checks: NoChecksAnywhere = False


class PrintsTables(LoadsBenchmarks):
    """Of commands that print a report in any format of `cir_datasets.common.tables`."""

    format: str | None = option(
        None,
        "table (per cent; the default), json (fractions), csv (a line a number), latex, markdown.",
        values=format_values,
    )
    as_json: bool = option(False, "Print JSON, as --format json does.", "--json")

    def __post_init__(self) -> None:
        """Refuse two formats, and one that there is not."""
        from cir_datasets.common.tables import check_format
        from cir_metrics.errors import CallError

        if self.as_json and self.format not in (None, "json"):
            raise CallError(
                f"--json and --format {self.format} ask for two formats. Fix: leave one of them out."
            )
        check_format(self.printed)

    @property
    def printed(self) -> str:
        """The format that is printed."""
        return "json" if self.as_json else self.format or "table"


Images = Annotated[
    Path | None,
    typer.Option("--images", help="Folder of the images; default: below CIR_IMAGES. Shapes are drawn."),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Where to write: the file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JsonBenchmarks = Annotated[bool, typer.Option("--json", help="Print JSON: one object a benchmark.")]


def mode_of(no_checks: bool) -> str | None:
    """The `verification_mode` that the command names, or None where it names none."""
    return "no_checks" if no_checks else None


def write_out(out: Path, content: bytes) -> None:
    """Write a file and print its name.

    Raises:
        DatasetError: the system refuses to write there.
    """
    from cir_datasets.errors import DatasetError

    try:
        out.write_bytes(content)
    except OSError as error:
        raise DatasetError(
            f"{out}: cannot be written: {error.strerror}. Fix: choose another --out."
        ) from error
    echo(str(out))
