"""`cir datasets export`, `qrels`, `template` and `publish`: for other programs, and for the Hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.commands import Benchmarks, DataDir, JsonBenchmarks, NoChecks, Out, mode_of, write_out
from cir_datasets.common.terminal import echo, echo_json


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
    from cir_datasets.export.ground_truth import evaluator_queries

    mode = mode_of(no_checks)
    content = evaluator_queries(load(benchmark, data_dir=data_dir, verification_mode=mode))
    write_out(out, content)


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
    from cir_datasets.export.ground_truth import trec_qrels

    mode = mode_of(no_checks)
    content = trec_qrels(load(benchmark, data_dir=data_dir, verification_mode=mode), subset=subset)
    write_out(out, content)


def template_folder(
    name: Annotated[
        str, typer.Argument(help="A benchmark whose data is pending publication: fisd, zerosight.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write; nothing is overwritten.")],
    config: Annotated[
        list[str] | None,
        typer.Option("--config", help="A configuration (of fisd: an aspect); again for more. Default: all."),
    ] = None,
) -> None:
    """Write a small invented example of the folder that a benchmark is read from.

    It loads with cir --no-checks, since its counts are not the benchmark's. README.txt in it says what each
    file must hold. The names of the files are printed, one a line.

    \b
    Example:
        cir datasets template fisd FISD
        cir --no-checks datasets prepare fisd --data-dir FISD
    """
    from cir_datasets.export.template import write_template

    for path in write_template(name, folder, config or ()):
        echo(str(path))


def publish_benchmarks(
    benchmarks: Benchmarks,
    to: Annotated[
        Path, typer.Option(metavar="DIR", help="Where to: a folder; each benchmark gets a folder in it.")
    ],
    push: Annotated[
        str | None,
        typer.Option(metavar="ORG/NAME", help="Push to this repository on the Hub, in one commit."),
    ] = None,
    may_copy: Annotated[
        str | None,
        typer.Option(
            "--i-may-copy",
            metavar="LICENCE",
            help="You may publish a copy: the licence's words, where it does not allow every copy.",
        ),
    ] = None,
    private: Annotated[
        bool | None,
        typer.Option(
            "--private/--public",
            help="Make what is new private: the repository; default: that of a folder of your own is.",
        ),
    ] = None,
    even_private: Annotated[
        bool,
        typer.Option(
            "--even-private", help="Push although the card of a benchmark of yours says private: true."
        ),
    ] = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Go on without what is missing; it is listed.")
    ] = False,
    remove_others: Annotated[
        bool,
        typer.Option(
            "--remove-others",
            help="Remove configurations that are published there and are not named or not available now.",
        ),
    ] = False,
    data_dir: DataDir = None,
    no_checks: NoChecks = False,
    as_json: JsonBenchmarks = False,
) -> None:
    """Write benchmarks as datasets for the Hub: Parquet, a dataset card, Croissant metadata.

    DIR/NAME then loads anywhere: load_dataset("DIR/circled", "cirr_val"). Images are never part of it.

    \b
    Example:
        cir datasets publish shapes --to published
        cir datasets publish circo --to published --push me/circo --i-may-copy "CC BY-NC 4.0"
    """
    from cir_datasets.publishing.publish import publish

    done = publish(
        benchmarks,
        to,
        data_dir=data_dir,
        verification_mode=mode_of(no_checks),
        skip_missing=skip_missing,
        push_to=push,
        may_copy=may_copy,
        private=private,
        even_private=even_private,
        remove_others=remove_others,
    )
    for one in done:
        for benchmark_id, reason in one.skipped.items():
            echo(f"cir: left out {benchmark_id}: {reason}", err=True)
        for words in (*one.notes, *(f"mlcroissant: {warning}" for warning in one.warnings)):
            echo(f"cir: {one.name}: {words}", err=True)
    if as_json:
        echo_json([one.to_dict() for one in done])
    else:
        for one in done:
            echo(one.text())
