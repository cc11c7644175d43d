"""`cir datasets qrels`."""

from __future__ import annotations

from typing import Annotated

import typer

from cir_datasets.commands import DataDir, NoChecks, Out, mode_of, write_out


def write_qrels(
    benchmark: Annotated[
        str, typer.Argument(metavar="ID", help="A benchmark with public ground truth, such as cirr/val.")
    ],
    out: Out,
    subset: Annotated[
        bool, typer.Option("--subset", help="Judge the rankings of CIRR's subsets, qids QUERY#subset.")
    ] = False,
    data_dir: DataDir = None,
    no_checks: NoChecks = False,
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
    from cir_datasets.export.qrels import trec_qrels

    mode = mode_of(no_checks)
    content = trec_qrels(load(benchmark, data_dir=data_dir, verification_mode=mode), subset=subset)
    write_out(out, content)
