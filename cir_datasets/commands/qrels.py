"""`cir datasets qrels`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def write_qrels(
    benchmark: Annotated[
        str, typer.Argument(metavar="ID", help="A benchmark with public ground truth, such as cirr/val.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    subset: Annotated[
        bool, typer.Option("--subset", help="Judge the rankings of CIRR's subsets, qids QUERY#subset.")
    ] = False,
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
    """Write a benchmark's ground truth as TREC qrels: positives 1, hard negatives 0.

    With the run that cir convert --to trec writes, trec_eval computes its own measures. Its success@K is
    Recall@K here where a query has one positive; with several, success counts any of them and Recall@K the
    target alone. The file's name is printed.

    \b
    Example:
        cir datasets qrels shapes/val --out shapes.qrels
    """
    from cir_datasets import load
    from cir_datasets.errors import DatasetError
    from cir_datasets.prepared import checks_wanted
    from cir_datasets.qrels import trec_qrels

    mode = checks_wanted("no_checks" if no_checks else None)
    content = trec_qrels(load(benchmark, data_dir=data_dir, verification_mode=mode), subset=subset)
    try:
        out.write_bytes(content)
    except OSError as error:
        raise DatasetError(
            f"{out}: cannot be written: {error.strerror}. Fix: choose another --out."
        ) from error
    typer.echo(str(out))
