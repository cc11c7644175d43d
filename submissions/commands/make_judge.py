"""`cir make comparison` and `cir make judge`: sessions to compare with, and a model that judges both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.commands import Images, LoadsBenchmarks, argument, command, format_values, option
from cir_datasets.common.terminal import echo
from submissions.commands import SingleQueries, report_usage
from submissions.running.method_options import PromptOptions, SeedOptions

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark


class ComparisonOptions(SeedOptions, LoadsBenchmarks):
    """What `cir make comparison` takes."""

    benchmark: SingleQueries
    out: Path = option(..., "Where to write: the folder of the benchmark that is made.", "-o")
    way: str = option(
        "concatenation", "concatenation (queries that are drawn), or chains (a target is the next reference)."
    )
    limit: int | None = option(None, "At most so many: sessions.", min=1)
    name: str | None = option(
        None, "Name of what is made: the benchmark's; default: --way and the name of --benchmark."
    )


@command
def comparison_command(options: ComparisonOptions) -> None:
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

    source = loaded_benchmark(options.benchmark)
    queries = queries_of(source)
    subset = source.id.replace("/", "_")
    gallery = list(source.gallery or ())
    if options.way == "chains" and source.spec.card.source.publisher == "embedded":
        rows = shapes_chains(gallery, options.limit or len(queries), seed=options.seed)
    else:
        rows = compared(queries, options.way, subset, seed=options.seed, limit=options.limit)
    named = (turn["reference_image_id"] for row in rows for turn in row["turns"])
    made = write_benchmark(
        options.out,
        name=options.name or f"{options.way}_{subset}",
        title=f"Queries of {source.id} put together ({options.way})",
        configs={"test": rows},
        galleries=list(dict.fromkeys((*gallery, *named))),
        summary=f"Single queries of {source.id}, put together to sessions by {options.way}, to compare with.",
        reference="kept",
        made={
            "pipeline": "comparison",
            "benchmark": source.id,
            "data": source.data_hash,
            "way": options.way,
            "seed": options.seed,
        },
        **relative_paths(source),
    )
    echo(str(made))


class JudgeOptions(SeedOptions, PromptOptions, LoadsBenchmarks):
    """What `cir make judge` takes."""

    sources: list[str] = argument(
        ..., "Benchmarks of sessions: ids, names, suites, or folders of `cir make`."
    )
    judge: list[str] = option(
        ..., "Language backend that judges, as --language elsewhere; twice for the agreement of two."
    )
    out: Path = option(..., "Where to write: the folder of judgements.jsonl, tables and the figure.", "-o")
    sessions: int = option(60, "Drawn of each source.", min=1)
    runs: int = option(1, "How often each judge judges; the agreement is of all.", min=1, in_file=True)
    images: Images = None
    format: str = option("table", "table (the default), json, csv, latex or markdown.", values=format_values)


@command
def judge_command(options: JudgeOptions) -> None:
    """Let language models judge sessions on five scales, each session alone, several sources side by side.

    A row each, a row a source (a dataset; what `cir make circled` made, what it filtered out, each way of
    `cir make comparison`) and a row of all.

    \b
    Example:
        cir make judge shapes/multiturn_val --judge oracle --out judged
        cir make judge circled multiturn_fashioniq made/*/unfiltered mixed/* \\
            --judge openai:gpt-5-mini --out table-5
    """
    import orjson

    from cir_datasets.common.atomic import write_whole
    from cir_datasets.common.plots import DPI
    from cir_datasets.common.tables import render
    from cir_datasets.common.terminal import check_format
    from cir_datasets.construction.circled.judging import agreement_table, scores_figure, scores_table
    from submissions.making.circled import source_name

    check_format(options.format)
    loaded = {source.id: source for name in options.sources for source in _sources(name)}
    pools = {name: source_name(source) for name, source in loaded.items()}
    rows = [
        row
        for number in range(len(options.judge))
        for run in range(options.runs)
        for row in _judged([*loaded.values()], options, number, run)
    ]
    found = [table for table in (scores_table(rows, pools), agreement_table(rows)) if table is not None]
    write_whole(
        options.out / "judgements.jsonl",
        b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows),
    )
    write_whole(options.out / "judgements.md", render(found, "markdown").encode() + b"\n")
    scores_figure(rows, pools).savefig(options.out / "judgements.png", dpi=DPI, facecolor="white")
    echo(render(found, options.format))


def _sources(name: str) -> list[Benchmark]:
    from cir_datasets.errors import ConstructionError
    from submissions.making.circled import benchmarks_of

    sources = benchmarks_of(name)
    for source in sources:
        if not source.multi_turn or source.ground_truth_withheld:
            raise ConstructionError(
                f"{name}: a judge reads sessions with public targets. Fix: name a benchmark of sessions."
            )
    return sources


def _judged(sources: list[Benchmark], options: JudgeOptions, number: int, run: int) -> list[dict[str, Any]]:
    """What a judge says at one of its runs."""
    from cir_datasets.construction.circled.judging import Judge, judged, pictures_judged
    from cir_datasets.construction.circled.queries import drawn
    from submissions.language import load_language
    from submissions.making.backends import LanguageWords
    from submissions.making.circled import aims_of, source_pictures

    backend = options.judge[number]
    named, once = backend.partition(",")[0], options.judge.count(backend) == 1
    label = named if once else f"{named} ({number + 1})"
    label += "" if options.runs == 1 else f", run {run + 1}"
    more: dict[str, Any] = {} if options.prompts is None else {"prompts": options.prompts}
    # An answer of the cache is the first run's; others ask anew, and keep theirs beside it.
    if (options.runs > 1 or not once) and backend.startswith(("openai", "transformers")):
        more["cache"] = options.out / f"answers-{number + 1}-{run + 1}"
    speaker = load_language(backend, **more)
    rows = []
    try:
        for source in sources:
            some = drawn(source.rows(), "session_id", options.sessions, options.seed)
            aims = aims_of(source)
            ids = [image for row in some for image in pictures_judged(row, aims.get(row["session_id"]))]
            pictures = source_pictures(source, options.images, list(dict.fromkeys(ids)))
            rows += judged(Judge(label, LanguageWords(speaker, pictures)), source.id, some, aims)
    finally:
        report_usage(speaker)
    return rows
