"""`cir datasets export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export_queries(
    benchmark: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="A single-turn benchmark with public ground truth, such as zerosight/test."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    data_dir: Annotated[
        Path | None,
        typer.Option(help="The publisher's folder or its parent; without it CIR_DATA_HOME, then a download."),
    ] = None,
    no_checks: Annotated[
        bool,
        typer.Option(
            "--no-checks",
            help="Do not compare the counts with the card; so does CIR_VERIFICATION_MODE=no_checks.",
        ),
    ] = False,
) -> None:
    """Write a benchmark's ground truth as the queries file of ZeroSight's released evaluator.

    With the results that `cir convert --to zerosight` writes, the evaluator computes its mAP and its own
    variant of PNR-mAP. The file's name is printed.

    \b
    Example:
        cir datasets export zerosight/test --out queries.json
    """
    from cir_datasets import load
    from cir_datasets.errors import DatasetError
    from cir_datasets.evaluator_files import evaluator_queries
    from cir_datasets.prepared import checks_wanted

    mode = checks_wanted("no_checks" if no_checks else None)
    content = evaluator_queries(load(benchmark, data_dir=data_dir, verification_mode=mode))
    try:
        out.write_bytes(content)
    except OSError as error:
        raise DatasetError(
            f"{out}: cannot be written: {error.strerror}. Fix: choose another --out."
        ) from error
    typer.echo(str(out))
