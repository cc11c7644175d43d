"""`cir rerank`: from a rank file to a rank file whose best images stand in the order of SC4CIR."""

from __future__ import annotations

from pathlib import Path

from cir_datasets.commands import Images, LoadsBenchmarks, argument, command, option
from cir_datasets.common.terminal import echo
from submissions.commands import (
    FILE_HELP,
    Benchmark,
    EstimatesReranking,
    find_modules_here,
    method_values,
    report_usage,
)
from submissions.commands.outputs import check_file, print_made
from submissions.methods.sc4cir import SC4CIR, Cost
from submissions.running.method_options import LANGUAGE_HELP, DeviceOptions, PromptOptions


class RerankOptions(EstimatesReranking, PromptOptions, DeviceOptions, LoadsBenchmarks):
    """What `cir rerank` takes."""

    was_on_line = False
    file: str = argument(..., FILE_HELP)
    benchmark: Benchmark = None
    language: str | None = option(None, f"{LANGUAGE_HELP}; none for s1 alone.")
    top: int = option(SC4CIR.top, "Images of a ranking that are ranked anew, 1 to 1,000.")
    processes: str | None = option(
        None,
        "What is added up: s1, s2, s3, or several as in s1+s3; default: all with --method, else s1+s3.",
        in_file=True,
    )
    turns: str = option(SC4CIR.turns, "Of a session: last or each.", in_file=True)
    method: str | None = option(
        None,
        "Name of the method, the one that made the file, for s1 and s2; without it s1 is by rank.",
        "-m",
        values=method_values,
    )
    encoder: str | None = option(
        None,
        "Encoder: of --method, where it has one, and of the words of s3; on shapes: shapes.",
        "-e",
    )
    images: Images = None
    skip_missing: bool = option(
        False, "Go on without what is missing: images that cannot be read are not ranked anew."
    )
    out: Path | None = option(
        None, "Where to write: a file, .json or .json.gz; default: NAME-sc4cir.json in this folder.", "-o"
    )
    as_json: bool = option(
        False, "Print JSON: file, benchmark, method; with --dry-run the estimate.", "--json"
    )


@command
def rerank_command(options: RerankOptions) -> None:
    """Rank the best images of a rank file anew by SC4CIR: whether the way back leads to the query.

    FILE may be of any method and format; a bundle is ranked anew member by member. The name of the file
    written is printed.

    \b
    Example:
        cir rerank run.json --language oracle
        cir rerank run.json --language openai:gpt-4o,concurrency=16 --images ~/images \\
            --encoder openai/clip-vit-large-patch14
        cir rerank run.json --language oracle --method image_text_sum
    """
    from submissions.running.rerank import rerank_file, rerank_options
    from submissions.truncation import one_truncation_warning

    out = options.out or Path(Path(options.file).name.partition(".")[0] + "-sc4cir.json")
    options.check_dry_run(options.out)
    check_file(out)
    if options.method is not None:
        find_modules_here(options.method)
    settings = options.call(
        rerank_options,
        prompts=options.prompts,
        device=options.device,
        skip_missing=options.skip_missing,
        language=options.language,
        images=options.images,
    )
    if options.dry_run:
        from submissions.running.rerank_estimate import estimated_for

        found = estimated_for(options.file, options.benchmark, options.method, settings, options.tokens)
        options.print_estimate(found, settings, as_json=options.as_json)
        return
    costs: list[Cost] = []
    settings = settings.with_language()
    try:
        with one_truncation_warning():
            made = rerank_file(options.file, options.benchmark, options.method, settings, costs)
    finally:
        for cost in costs:
            echo(f"{SC4CIR.title}: {cost.text()}", err=True)
        report_usage(settings.language)
    print_made(made, out, as_json=options.as_json)
