"""`cir datasets export`, `qrels`, `template` and `publish`: for other programs, and for the Hub."""

from __future__ import annotations

from pathlib import Path

from cir_datasets.commands import (
    Benchmarks,
    JsonBenchmarks,
    Options,
    Out,
    ReadsBenchmarks,
    argument,
    command,
    option,
    write_out,
)
from cir_datasets.common.terminal import echo, echo_json


class ExportOptions(ReadsBenchmarks):
    """What `cir datasets export` takes."""

    benchmark: str = argument(
        ..., "A single-turn benchmark with public ground truth, such as zerosight/test.", metavar="ID"
    )
    out: Out


@command
def export_queries(options: ExportOptions) -> None:
    """Write a benchmark's ground truth as the queries file of ZeroSight's released evaluator.

    With the results that `cir convert --to zerosight` writes, the evaluator computes its mAP and its own
    variant of PNR-mAP. The file's name is printed.

    \b
    Example:
        cir datasets export zerosight/test --out queries.json
    """
    from cir_datasets.export.ground_truth import evaluator_queries

    write_out(options.out, evaluator_queries(options.load(options.benchmark)))


class QrelsOptions(ReadsBenchmarks):
    """What `cir datasets qrels` takes."""

    benchmark: str = argument(..., "A benchmark with public ground truth, such as cirr/val.", metavar="ID")
    out: Out
    subset: bool = option(False, "Judge the rankings of CIRR's subsets, qids QUERY#subset.")


@command
def write_qrels(options: QrelsOptions) -> None:
    """Write a benchmark's ground truth as TREC qrels: positives 1, hard negatives 0.

    With the run that cir convert --to trec writes, trec_eval computes its own measures. Its success@K is
    Recall@K here where a query has one positive; with several, success counts any of them and Recall@K the
    target alone. The file's name is printed.

    \b
    Example:
        cir datasets qrels shapes/val --out shapes.qrels
    """
    from cir_datasets.export.ground_truth import trec_qrels

    write_out(options.out, trec_qrels(options.load(options.benchmark), subset=options.subset))


class TemplateOptions(Options):
    """What `cir datasets template` takes."""

    name: str = argument(..., "A benchmark whose data is pending publication: fisd, zerosight.")
    folder: Path = argument(..., "Folder to write; nothing is overwritten.", metavar="DIR")
    config: list[str] | None = option(
        None, "A configuration (of fisd: an aspect); again for more. Default: all."
    )


@command
def template_folder(options: TemplateOptions) -> None:
    """Write a small invented example of the folder that a benchmark is read from.

    It loads with cir --no-checks, since its counts are not the benchmark's. README.txt in it says what each
    file must hold. The names of the files are printed, one a line.

    \b
    Example:
        cir datasets template fisd FISD
        cir --no-checks datasets prepare fisd --data-dir FISD
    """
    from cir_datasets.export.template import write_template

    for path in write_template(options.name, options.folder, options.config or ()):
        echo(str(path))


class PublishOptions(ReadsBenchmarks):
    """What `cir datasets publish` takes."""

    benchmarks: Benchmarks
    to: Path = option(..., "Where to: a folder; each benchmark gets a folder in it.", metavar="DIR")
    push: str | None = option(None, "Push to this repository on the Hub, in one commit.", metavar="ORG/NAME")
    may_copy: str | None = option(
        None,
        "You may publish a copy: the licence's words, where it does not allow every copy.",
        "--i-may-copy",
        metavar="LICENCE",
    )
    private: bool | None = option(
        None,
        "Make what is new private: the repository; default: that of a folder of your own is.",
        "--private/--public",
    )
    even_private: bool = option(False, "Push although the card of a benchmark of yours says private: true.")
    skip_missing: bool = option(False, "Go on without what is missing; it is listed.")
    remove_others: bool = option(
        False, "Remove configurations that are published there and are not named or not available now."
    )
    as_json: JsonBenchmarks = False


@command
def publish_benchmarks(options: PublishOptions) -> None:
    """Write benchmarks as datasets for the Hub: Parquet, a dataset card, Croissant metadata.

    DIR/NAME then loads anywhere: load_dataset("DIR/circled", "cirr_val"). Images are never part of it.

    \b
    Example:
        cir datasets publish shapes --to published
        cir datasets publish circo --to published --push me/circo --i-may-copy "CC BY-NC 4.0"
    """
    from cir_datasets.publishing.publish import publish

    done = options.call(publish, push_to=options.push, verification_mode=options.verification_mode)
    for one in done:
        for benchmark_id, reason in one.skipped.items():
            echo(f"cir: left out {benchmark_id}: {reason}", err=True)
        for words in (*one.notes, *(f"mlcroissant: {warning}" for warning in one.warnings)):
            echo(f"cir: {one.name}: {words}", err=True)
    if options.as_json:
        echo_json([one.to_dict() for one in done])
    else:
        for one in done:
            echo(one.text())
