"""`cir make comparison` and `cir make judge`: sessions to compare with, and a model that judges both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cir_datasets.commands import DataDirAnywhere, Images, NoChecksAnywhere, format_values
from cir_datasets.common.terminal import echo
from submissions.commands import Prompts, Seed, SingleQueries

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark


def comparison_command(
    benchmark: SingleQueries,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to write: the folder of the benchmark that is made.")
    ],
    way: Annotated[
        str,
        typer.Option(
            "--way",
            help="concatenation (queries that are drawn), or chains (a target is the next reference).",
        ),
    ] = "concatenation",
    seed: Seed = 0,
    limit: Annotated[int | None, typer.Option("--limit", help="At most so many: sessions.", min=1)] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="Name of what is made: the benchmark's; default: --way and the name of --benchmark.",
        ),
    ] = None,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Put single queries together to sessions that lead nowhere, to compare made ones with.

    \b
    Example:
        cir make comparison --benchmark shapes/val --limit 100 --out concatenated
    """
    from cir_datasets.construction.circled.comparison import compared, shapes_chains
    from cir_datasets.construction.circled.queries import queries_of
    from cir_datasets.construction.folder import write_benchmark
    from submissions.making.circled import relative_paths
    from submissions.running.make import loaded_benchmark

    source = loaded_benchmark(benchmark)
    queries = queries_of(source)
    subset = source.id.replace("/", "_")
    gallery = list(source.gallery or ())
    if way == "chains" and source.spec.card.source.publisher == "embedded":
        rows = shapes_chains(gallery, limit or len(queries), seed=seed)
    else:
        rows = compared(queries, way, subset, seed=seed, limit=limit)
    named = (turn["reference_image_id"] for row in rows for turn in row["turns"])
    made = write_benchmark(
        out,
        name=name or f"{way}_{subset}",
        title=f"Queries of {source.id} put together ({way})",
        configs={"test": rows},
        galleries=list(dict.fromkeys((*gallery, *named))),
        summary=f"Single queries of {source.id}, put together to sessions by {way}, to compare with.",
        reference="kept",
        made={
            "pipeline": "comparison",
            "benchmark": source.id,
            "data": source.data_hash,
            "way": way,
            "seed": seed,
        },
        **relative_paths(source),
    )
    echo(str(made))


def judge_command(
    sources: Annotated[
        list[str], typer.Argument(help="Benchmarks of sessions: ids, or folders of `cir make`.")
    ],
    judge: Annotated[
        list[str],
        typer.Option(
            "--judge",
            help="Language backend that judges, as --language elsewhere; twice for the agreement of two.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Where to write: the folder of judgements.jsonl, tables and the figure."
        ),
    ],
    sessions: Annotated[int, typer.Option("--sessions", help="Drawn of each source.", min=1)] = 60,
    seed: Seed = 0,
    runs: Annotated[
        int, typer.Option("--runs", help="How often each judge judges; the agreement is of all.", min=1)
    ] = 1,
    images: Images = None,
    prompts: Prompts = None,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            autocompletion=format_values,
            help="table (the default), json, csv, latex or markdown.",
        ),
    ] = "table",
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Let language models judge sessions on five scales, each session alone, several sources side by side.

    \b
    Example:
        cir make judge shapes/multiturn_val --judge oracle --out judged
        cir make judge circled/cirr_val my-sessions/benchmark --judge openai:gpt-5-mini --out judged
    """
    import orjson

    from cir_datasets.common.atomic import write_whole
    from cir_datasets.common.plots import DPI
    from cir_datasets.common.tables import check_format, render
    from cir_datasets.construction.circled.judging import agreement_table, scores_figure, scores_table

    check_format(format)
    loaded = [_source(name) for name in sources]
    rows: list[dict[str, Any]] = []
    for number, backend in enumerate(judge):
        for run in range(runs):
            shown = backend.partition(",")[0]
            label = shown if judge.count(backend) == 1 else f"{shown} ({number + 1})"
            rows += _judged(
                loaded,
                backend,
                label if runs == 1 else f"{label}, run {run + 1}",
                images,
                prompts,
                (sessions, seed),
                # An answer of the cache is the first run's; others ask anew, and keep theirs beside it.
                cache=None
                if runs == 1 and judge.count(backend) == 1
                else out / f"answers-{number + 1}-{run + 1}",
            )
    found = [table for table in (scores_table(rows), agreement_table(rows)) if table is not None]
    write_whole(
        out / "judgements.jsonl",
        b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows),
    )
    write_whole(out / "judgements.md", render(found, "markdown").encode() + b"\n")
    scores_figure(rows).savefig(out / "judgements.png", dpi=DPI, facecolor="white")
    echo(render(found, format))


def _source(name: str) -> Benchmark:
    """A benchmark by its id, or by its folder."""
    from cir_datasets.errors import ConstructionError
    from submissions.making.circled import folder_benchmark
    from submissions.running.make import loaded_benchmark

    loaded = folder_benchmark(Path(name)) if Path(name).is_dir() else loaded_benchmark(name)
    if not loaded.multi_turn or loaded.ground_truth_withheld:
        raise ConstructionError(
            f"{name}: a judge reads sessions with public targets. Fix: name a benchmark of sessions."
        )
    return loaded


def _judged(
    sources: list[Benchmark],
    backend: str,
    label: str,
    images: Path | None,
    prompts: Path | None,
    draw: tuple[int, int],
    *,
    cache: Path | None,
) -> list[dict[str, Any]]:
    from cir_datasets.construction.circled.judging import Judge, drawn, judged
    from submissions.commands import report_usage
    from submissions.language import load_language
    from submissions.making.backends import LanguageWords
    from submissions.making.circled import source_pictures

    options: dict[str, Any] = {} if prompts is None else {"prompts": prompts}
    if cache is not None and backend.startswith(("openai", "transformers")):
        options["cache"] = cache
    speaker = load_language(backend, **options)
    rows = []
    try:
        for source in sources:
            some = drawn(source.rows(), *draw)
            ids = [
                image
                for row in some
                for image in (
                    *(turn["reference_image_id"] for turn in row["turns"]),
                    *row["ground_truth_ids"][:1],
                )
            ]
            words = LanguageWords(speaker, source_pictures(source, images, list(dict.fromkeys(ids))))
            rows += judged(Judge(label, words), source.id, some)
    finally:
        report_usage(speaker)
    return rows
