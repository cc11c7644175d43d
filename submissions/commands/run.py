"""`cir run`: from a benchmark and a method to a rank file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import LoadsBenchmarks, benchmark_values, command, option
from cir_datasets.common.terminal import counted, echo
from submissions.commands import EstimatesReranking, as_text, find_modules_here, method_values, report_usage
from submissions.commands.outputs import check_file, check_folder, warn_of_short_rankings
from submissions.methods.sc4cir import SC4CIR, Cost
from submissions.running.method_options import ENCODER_HELP
from submissions.running.options import ALL, RunOptions

if TYPE_CHECKING:
    from submissions.language.protocol import Language
    from submissions.rank_file.model import RankBundle, RankFile


class RunCommandOptions(
    RunOptions,
    EstimatesReranking,
    LoadsBenchmarks,
    on_line=("skip_missing", "rerank_turns"),
):
    """What `cir run` takes."""

    benchmark: str = option(..., "Id of the benchmark, or suite, to rank.", "-b", values=benchmark_values)
    method: str | None = option(
        None,
        "Name of the method, of cir methods list, or module:Class of your own.",
        "-m",
        values=method_values,
    )
    all_baselines: bool = option(
        False, "Run every baseline that can rank this benchmark: without weights, and with the encoder."
    )
    encoder: str | None = option(None, f"{ENCODER_HELP}; with --all-baselines also none.", "-e")
    out: Path | None = option(
        None,
        "Where to write: a file, .json or .json.gz; with --all-baselines or --aggregation all a folder for "
        "NAME.BENCHMARK.json.",
        "-o",
    )
    as_json: bool = option(
        False,
        "Print JSON: file, benchmark, method of all files written; with --dry-run the estimate.",
        "--json",
    )


@command
def run_command(options: RunCommandOptions) -> None:
    """Rank a benchmark by a method or by all baselines, and write rank files; of a suite a bundle.

    Embeddings are kept below CIR_CACHE_HOME and used again. The names of the files written are printed, one
    a line; cir score says where each stands.

    \b
    Example:
        cir run --benchmark shapes/val --method random --out run.json
        cir run --benchmark cirr/val --method image_text_sum --encoder openai/clip-vit-large-patch14 \\
            --images ~/images --out run.json
        cir run --benchmark shapes/val --method image_text_sum --rerank sc4cir --language oracle
        cir run --benchmark circled/val --method text_only --aggregation all --out runs
    """
    from cir_datasets.registry.challenges import is_challenge
    from cir_metrics.errors import CallError
    from submissions.methods import method_names
    from submissions.rank_file.model import write
    from submissions.truncation import one_truncation_warning

    benchmark, method, out = options.benchmark, options.method, options.out
    if (method is None) == (not options.all_baselines):
        known = ", ".join(method_names())
        raise CallError(
            f"name one method or ask for all. Fix: add --method NAME ({known}) or --all-baselines."
        )
    options.check_dry_run(out)
    several = options.all_baselines or options.aggregation == ALL
    if several:
        check_folder(out or Path())
    elif out is None:
        check_folder(Path())
    else:
        check_file(out)
    short = warn_of_short_rankings(benchmark, options.k)
    settings = options.call(RunOptions)
    if options.dry_run:
        _estimate(benchmark, method, settings, options)
        return
    runs = _all(options, settings) if method is None else _one(benchmark, method, settings)
    label = benchmark.replace("/", "-")
    written = []
    with one_truncation_warning():
        for name, used, rank_file in runs:
            path = (out or Path()) / f"{name}.{label}.json" if several or out is None else out
            made = str(write(rank_file, path))
            _report_skipped(rank_file)
            written.append({"file": made, "benchmark": benchmark, "method": used})
            if not options.as_json:
                echo(made)
    if options.as_json:
        echo(as_text(written))
    if len(written) == 1 and not short:
        asked = "cir submit {} --to URL" if is_challenge(benchmark) else "cir score {}"
        echo(f"Where it stands: {asked.format(written[0]['file'])}", err=True)


def _one(
    benchmark: str, method: str, options: RunOptions
) -> Iterator[tuple[str, str, RankFile | RankBundle]]:
    from submissions.running.aggregation import AGGREGATIONS
    from submissions.running.make import prepare

    find_modules_here(method)
    costs: list[Cost] = []
    options = options.with_language()  # loaded here, so that what it cost can be printed
    try:
        make = prepare(benchmark, method, options, costs=costs)
        echo(f"{method}: ranking {benchmark} ...", err=True)
        name, labels = method.rpartition(":")[2], AGGREGATIONS if options.aggregation == ALL else ("",)
        # A method without vectors has the first of them alone.
        for label, made in zip(labels, make(), strict=False):
            yield "-".join(filter(None, (name, label))), method, made
    finally:
        for cost in costs:
            echo(f"{SC4CIR.title}: {cost.text()}", err=True)
        report_usage(options.language)


def _estimate(benchmark: str, method: str | None, settings: RunOptions, options: RunCommandOptions) -> None:
    """Print what re-ranking would ask."""
    from cir_datasets.registry import members_of
    from cir_metrics.errors import CallError
    from submissions.running.rerank_estimate import estimated

    if settings.rerank is None:
        raise CallError("--dry-run estimates a re-ranker. Fix: add --rerank sc4cir, or leave --dry-run out.")
    if method is None:
        raise CallError(
            "--dry-run estimates one method. Fix: name it by --method in the place of --all-baselines."
        )
    find_modules_here(method)
    members = members_of(benchmark)
    found = {name: estimated(name, method, settings, options.tokens) for name in members}
    options.print_estimate(found, settings, as_json=options.as_json)


def _all(
    options: RunCommandOptions, settings: RunOptions
) -> Iterator[tuple[str, str, RankFile | RankBundle]]:
    from submissions.running.baselines import baselines, check_used, run_baselines

    language = None if options.language is None else str(options.language)
    chosen = baselines(options.benchmark, encoder=options.encoder, language=language)
    for sentence in chosen.left_out:
        echo(sentence, err=True)
    check_used(chosen, settings)
    speakers: dict[str, Language] = {}
    made = run_baselines(options.benchmark, chosen, settings, speakers=speakers)
    try:
        for each in chosen.run:
            echo(f"{each.name}: ranking {options.benchmark} ...", err=True)
            yield each.name, each.method, next(made)[1]
    finally:
        for speaker in speakers.values():
            report_usage(speaker)


def _report_skipped(rank_file: RankFile | RankBundle) -> None:
    """How many images could not be read, of each benchmark."""
    from submissions.rank_file.model import runs_of

    for each in runs_of(rank_file):
        if each.method.skipped_images:
            behind = "all others that were ranked anew" if each.method.reranking else "all others"
            echo(
                f"{each.benchmark}: {counted(each.method.skipped_images, 'image')} missing or unreadable and "
                f"skipped: ranked behind {behind}.",
                err=True,
            )
