"""`cir datasets export`."""

from __future__ import annotations

from typing import Annotated

import typer

from cir_datasets.commands import DataDir, NoChecks, Out, mode_of, write_out


def export_queries(
    benchmark: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="A single-turn benchmark with public ground truth, such as zerosight/test."
        ),
    ],
    out: Out,
    data_dir: DataDir = None,
    no_checks: NoChecks = False,
) -> None:
    """Write a benchmark's ground truth as the queries file of ZeroSight's released evaluator.

    With the results that `cir convert --to zerosight` writes, the evaluator computes its mAP and its own
    variant of PNR-mAP. The file's name is printed.

    \b
    Example:
        cir datasets export zerosight/test --out queries.json
    """
    from cir_datasets import load
    from cir_datasets.export.zerosight_queries import evaluator_queries

    mode = mode_of(no_checks)
    content = evaluator_queries(load(benchmark, data_dir=data_dir, verification_mode=mode))
    write_out(out, content)
