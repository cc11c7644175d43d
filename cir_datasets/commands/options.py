"""What several `cir datasets` commands ask for in the same words, and how they write a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cir_metrics.terminal import echo


def _without_checks(context: typer.Context, wanted: bool) -> bool:
    """Skip the checks in everything that the command does, as the environment variable would."""
    from cir_datasets.prepared import CHECKS_VARIABLE

    if wanted:
        before = os.environ.get(CHECKS_VARIABLE)
        os.environ[CHECKS_VARIABLE] = "no_checks"

        def put_back() -> None:
            os.environ.pop(CHECKS_VARIABLE)
            if before is not None:
                os.environ[CHECKS_VARIABLE] = before

        context.call_on_close(put_back)
    return wanted


Benchmarks = Annotated[
    list[str],
    typer.Argument(metavar="ID...", help="Benchmark ids, names (all configurations) or suites."),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="The publisher's folder or its parent; without it CIR_DATA_HOME, then a download."),
]
NoChecks = Annotated[
    bool,
    typer.Option(
        "--no-checks",
        help="Do not compare the counts with the card; so does CIR_VERIFICATION_MODE=no_checks.",
    ),
]
NoChecksAnywhere = Annotated[
    bool,
    typer.Option(
        "--no-checks",
        callback=_without_checks,
        help="Take a benchmark whose counts are not the card's, which scores then say; so does "
        "CIR_VERIFICATION_MODE=no_checks.",
    ),
]
"""Of commands that load benchmarks by way of other rooms, which hand no mode on."""
Out = Annotated[Path, typer.Option("--out", "-o", help="File to write.")]


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
