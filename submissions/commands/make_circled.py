"""`cir make circled`: from a single-turn benchmark to sessions in CIRCLED's way."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import LoadsBenchmarks, benchmark_values, command, option
from cir_datasets.common.terminal import counted, echo
from cir_datasets.construction.circled.settings import UNFILTERED, CircledSettings
from submissions.commands import (
    echo_use,
    report_usage,
    speaker_of,
)
from submissions.running.method_options import (
    LANGUAGE_HELP,
    BatchOptions,
    EncoderOptions,
    MakingOptions,
)

if TYPE_CHECKING:
    from cir_datasets.construction.circled.pipeline import MadeSessions
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.embeddings.pictures import Pictures

BENCHMARK_FOLDER, UNFILTERED_FOLDER = "benchmark", "unfiltered"


class MakeCircledOptions(
    CircledSettings,
    EncoderOptions,
    BatchOptions,
    MakingOptions,
    LoadsBenchmarks,
):
    """What `cir make circled` takes."""

    benchmark: list[str] = option(
        ...,
        "Id of the benchmark, of single queries with public targets, or of a suite; may be repeated. Of "
        "several each has a folder in --out.",
        "-b",
        values=benchmark_values,
    )
    language: str = option(..., f"{LANGUAGE_HELP}; it captions, merges and writes.")
    diversity_encoder: str | None = option(
        None,
        "Encoder that compares captions; default: the paper's, openai/clip-vit-base-patch32, and "
        "with the encoder shapes that one.",
        in_file=True,
    )
    caption_prompt: str | None = option(
        None,
        "Prompt that describes an image: caption, or caption_clothes (the default of fashioniq).",
        "--captions",
        in_file=True,
    )
    name: str | None = option(
        None, "Name of what is made: the benchmark's; default: circled_ and that of --benchmark."
    )


@command
def circled_command(options: MakeCircledOptions) -> None:
    """Make consistent sessions of several turns out of single queries, as CIRCLED was made.

    Turn 1 is the published query, searched by a caption of its target. While no target is shown, the image
    nearest to it is picked, what it still lacks is said, and the search goes on. Filters keep the sessions
    that come nearer and repeat nothing. The same call goes on where a run was stopped.

    \b
    Example:
        cir make circled --benchmark shapes/val --language oracle --k 3 --out my-sessions
        cir make circled --benchmark fashioniq/val --benchmark cirr/val --out made --dry-run \\
            --encoder Salesforce/blip-itm-large-coco --language openai:gpt-4o-mini,concurrency=16
    """
    from cir_datasets.common.plots import check_plots
    from cir_datasets.common.tables import render
    from cir_datasets.construction.circled.estimate import estimates
    from cir_datasets.construction.circled.queries import queries_of
    from cir_datasets.construction.circled.tables import filter_table
    from cir_datasets.construction.names import check_name
    from cir_datasets.registry import members_of
    from submissions.cluster import cluster_of
    from submissions.language.loading import calls_at_once
    from submissions.running.make import loaded_benchmark

    members = dict.fromkeys(member for name in options.benchmark for member in members_of(name))
    sources = [loaded_benchmark(member) for member in members]
    several = len(sources) > 1
    parts = []
    for source in sources:
        subset = source.id.replace("/", "_")
        called = f"{options.name or 'circled'}_{subset}" if several or not options.name else options.name
        check_name(called)
        check_name(f"{called}{UNFILTERED}")
        parts.append(replace(options, name=called, out=options.out / subset if several else options.out))
    cluster_of(options.engine, options.address)
    # What has no sessions is refused before encoders are loaded and pictures are looked for.
    begun = [len(queries_of(source, limit=options.limit, seed=options.seed)) for source in sources]
    if options.dry_run:
        images = sum(len(source.gallery or ()) for source in sources)
        settings = options.call(CircledSettings)
        found = estimates(sum(begun), images, settings, calls_at_once(options.language))
        echo(render([each.table() for each in found], "table"))
        return
    check_plots("construction")
    counts = {source.id: _make(source, part) for source, part in zip(sources, parts, strict=True)}
    if several:
        echo(render([filter_table(counts)], "table"), err=True)


def _make(source: Benchmark, options: MakeCircledOptions) -> dict[str, int]:
    """Make sessions of one benchmark; the counts of its filters."""
    from cir_datasets.construction.circled.pipeline import make_circled
    from cir_datasets.construction.workspace import Workspace
    from submissions.cluster import cluster_of, connected
    from submissions.making.circled import (
        OnRay,
        earlier_splits,
        encoder_loaders,
        fingerprints,
        loaded_encoders,
        models_for,
        pictures_for,
    )

    usual = "caption_clothes" if source.spec.card.name == "fashioniq" else "caption"
    settings = options.call(CircledSettings, captions=options.caption_prompt or usual)
    cluster = cluster_of(options.engine, options.address)
    speaks = partial(speaker_of, options.language, options.prompts)
    speaker = speaks()
    encoder = None if options.encoder is None else str(options.encoder)
    loaders = encoder_loaders(source, encoder, options.diversity_encoder, device=options.device)
    ray = None if cluster is None else OnRay(cluster, *loaders, speaks)
    # One connection for all stages, so that workers keep their models from stage to stage.
    connection: AbstractContextManager[object] = nullcontext() if ray is None else connected(ray.cluster)
    try:
        first, second = loaded_encoders(*loaders)
        models = options.call(
            models_for, benchmark=source, encoder=first, diversity=second, language=speaker, ray=ray
        )
        pictures = pictures_for(source, options.images)
        others = earlier_splits(source, options.images) if settings.duplicates == "released" else []
        with Workspace.held(options.out), connection:
            made = make_circled(
                source,
                options.out,
                models,
                settings,
                fingerprint=lambda ids: fingerprints([pictures, *others], ids),
                others=[image for each in others for image in each.ids],
                inputs={"pictures": pictures.digest, "other_pictures": [each.digest for each in others]},
            )
            files = _write(made, source, options, settings, pictures)
        _report(made, source, settings)
        for path in files:
            echo(str(path))
        if made.sessions:
            echo_use(options.out / BENCHMARK_FOLDER)
        return made.counts
    finally:
        report_usage(speaker)


def _write(
    made: MadeSessions,
    source: Benchmark,
    options: MakeCircledOptions,
    settings: CircledSettings,
    pictures: Pictures,
) -> list[Path]:
    """The benchmark, the sessions that only the quality filters removed, and the page."""
    import orjson

    from cir_datasets.common.atomic import write_whole
    from cir_datasets.construction.circled.ranks_file import RANKS_FILE
    from cir_datasets.construction.circled.tables import sections
    from cir_datasets.construction.folder import write_benchmark
    from cir_datasets.construction.report import write_report
    from cir_datasets.construction.workspace import Workspace
    from submissions.making.circled import picture_paths

    out = options.out
    chosen = Workspace.existing(out).settings
    where = picture_paths(source, pictures)
    files = []
    for folder, rows, traces, title in (
        (BENCHMARK_FOLDER, made.sessions, made.checked, "Sessions"),
        (
            UNFILTERED_FOLDER,
            made.unfiltered,
            made.unfiltered_traces,
            "Sessions that the quality filters removed",
        ),
    ):
        if not rows:
            continue
        added = "" if folder == BENCHMARK_FOLDER else UNFILTERED
        files.append(
            write_benchmark(
                out / folder,
                name=f"{options.name}{added}",
                title=f"{title} made of {source.id}",
                configs={"test": rows},
                galleries=made.images,
                summary=f"{title} of several turns, made of {source.id} in the way of CIRCLED.",
                reference="kept",
                made={"pipeline": "circled", **chosen, "counts": made.counts},
                **where,
            )
        )
        lines = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in traces)
        write_whole(out / folder / RANKS_FILE, lines)
    write_whole(out / "circled.json", orjson.dumps(made.sessions, option=orjson.OPT_INDENT_2) + b"\n")
    place = {image: number for number, image in enumerate(pictures.ids)}
    found = made.counts
    files.append(
        write_report(
            out / "report.html",
            title=f"Sessions made of {source.id}",
            summary=f"{found['kept']:,} of {counted(found['begun'], 'session')} kept.",
            stages=made.workspace.states(),
            sections=sections(
                made, source, epsilon=settings.epsilon, tau=settings.tau, turns=settings.max_turns
            ),
            open_picture=lambda image: pictures.open(place[image]),
        )
    )
    return files


def _report(made: MadeSessions, source: Benchmark, settings: CircledSettings) -> None:
    """The counts, and why there is no benchmark where none is left."""
    from cir_datasets.common.tables import render
    from cir_datasets.construction.circled.tables import definitions_table, filter_table

    shown = [
        filter_table({source.id: made.counts}),
        definitions_table(made.checked, settings.epsilon, settings.tau),
    ]
    echo(render(shown, "table"), err=True)
    found = made.counts
    if not made.sessions:
        most = max((name for name in found if name not in ("begun", "kept")), key=lambda name: found[name])
        hint = {
            "several turns": "Fix: show fewer images (--k).",
            "success": "Fix: show more images (--k), or use a better --encoder.",
            "failed": "Fix: see the reasons in the stage `filters`.",
        }.get(most, "")
        echo(f"No session is left, so that there is no benchmark: most went at {most!r}. {hint}", err=True)
