"""`cir make zerosight` and `cir make clips`: a benchmark of videos, and videos of shapes to try it on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cir_datasets.common.estimates import CALL_SECONDS, PICTURE_TOKENS
from cir_datasets.common.terminal import echo
from submissions.commands import (
    LANGUAGE_HELP,
    Address,
    Device,
    DryRun,
    Engine,
    MadeName,
    Prompts,
    RunFolder,
    Seed,
    Title,
    report_usage,
)

if TYPE_CHECKING:
    from datetime import date


def zerosight_command(
    videos: Annotated[
        Path, typer.Option("--videos", help="Folder of videos, searched with its sub-folders.")
    ],
    out: RunFolder,
    vit_encoder: Annotated[
        str,
        typer.Option(
            "--vit-encoder", help="Encoder of the visual similarities; the paper: ViT-L/16 of ImageNet-21k."
        ),
    ] = "shapes",
    clip_encoder: Annotated[
        str,
        typer.Option(
            "--clip-encoder", help="Encoder of the semantic similarities; the paper: CLIP ViT-L/14."
        ),
    ] = "shapes",
    sentence_encoder: Annotated[
        str | None,
        typer.Option("--sentence-encoder", help="Encoder of captions; default: the one of --clip-encoder."),
    ] = None,
    language: Annotated[
        str,
        typer.Option(
            "--language",
            help=f"{LANGUAGE_HELP}; it looks and writes.",
        ),
    ] = "oracle",
    prompts: Prompts = None,
    thresholds: Annotated[
        str, typer.Option("--thresholds", help="paper, shapes, or a YAML file with the same fields.")
    ] = "paper",
    reference_visual: Annotated[
        float | None,
        typer.Option(
            "--reference-visual", help="From this visual similarity on the later of two references goes."
        ),
    ] = None,
    reference_semantic: Annotated[
        float | None, typer.Option("--reference-semantic", help="The same of semantic similarity.")
    ] = None,
    target_visual: Annotated[
        tuple[float, float] | None,
        typer.Option("--target-visual", help="Band of a target's visual similarity to its reference."),
    ] = None,
    target_semantic: Annotated[
        tuple[float, float] | None, typer.Option("--target-semantic", help="Band of its semantic similarity.")
    ] = None,
    mutual_visual: Annotated[
        float | None,
        typer.Option("--mutual-visual", help="From this visual similarity on the later of two targets goes."),
    ] = None,
    neighbour: Annotated[
        float | None,
        typer.Option("--neighbour", help="Of --consensus released: similarity of captions that agree."),
    ] = None,
    consensus: Annotated[
        str,
        typer.Option("--consensus", help="paper (Eq. 3-5), or released: the highest mean over neighbours."),
    ] = "paper",
    after: Annotated[
        str, typer.Option("--after", help="Videos published after this day alone (2022-03-31), or none.")
    ] = "2022-03-31",
    unknown_dates: Annotated[
        str, typer.Option("--unknown-dates", help="Videos without a known date: drop or keep.")
    ] = "drop",
    pool_frames: Annotated[
        str,
        typer.Option(
            "--pool-frames",
            help="Every fifth frame of other videos: of those at one a second (sampled), or of all (raw).",
        ),
    ] = "sampled",
    pictures: Annotated[str, typer.Option("--pictures", help="Format of the frames: jpg or png.")] = "jpg",
    review: Annotated[
        Path | None, typer.Option("--review", help="A filled-in review.csv; what follows it is made anew.")
    ] = None,
    name: MadeName = None,
    title: Title = None,
    seed: Seed = 0,
    limit: Annotated[int | None, typer.Option("--limit", help="At most so many: videos.", min=1)] = None,
    device: Device = "auto",
    engine: Engine = "local",
    address: Address = None,
    dry_run: DryRun = False,
    picture_tokens: Annotated[
        int, typer.Option("--picture-tokens", help="Of --dry-run: tokens of a picture.", min=1)
    ] = PICTURE_TOKENS,
    call_seconds: Annotated[
        float, typer.Option("--call-seconds", help="Of --dry-run: seconds of a call.", min=0.001)
    ] = CALL_SECONDS,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency", help="Of --dry-run: calls at once; default: those of --language.", min=1
        ),
    ] = None,
) -> None:
    """Make a benchmark of videos as ZeroSight was made: queries with positives and hard negatives.

    Frames at one a second; a model chooses references; targets are frames of the same video whose likeness
    lies in a band; a model writes a caption of each pair, and the captions that agree make the query. The
    same call goes on where a run was stopped; no question is asked twice.

    \b
    Example:
        cir make clips --out clips --videos 20
        cir make zerosight --videos clips --out my-frames --thresholds shapes --unknown-dates keep
        cir make zerosight --videos talks --out my-talks --clip-encoder openai/clip-vit-large-patch14 \\
            --vit-encoder FOLDER --language openai:gpt-4o,concurrency=8
    """
    from cir_datasets.common.tables import render
    from cir_datasets.construction.report import stage_table
    from cir_datasets.construction.review_files import TABLE, left_alone
    from cir_datasets.construction.workspace import FAILED, states_of
    from cir_datasets.construction.zerosight.estimate import estimate_table, estimates
    from cir_datasets.construction.zerosight.options import ZeroSightOptions, load_thresholds
    from submissions.language import load_language
    from submissions.language.loading import calls_at_once
    from submissions.making.ray import engine_of
    from submissions.making.zerosight import Encoders, look_at, make_zerosight

    options = ZeroSightOptions(
        thresholds=load_thresholds(
            thresholds,
            reference_visual=reference_visual,
            reference_semantic=reference_semantic,
            target_visual=target_visual,
            target_semantic=target_semantic,
            mutual_visual=mutual_visual,
            neighbour=neighbour,
        ),
        consensus=consensus,  # type: ignore[arg-type]
        after=_day(after),
        unknown_dates=unknown_dates,  # type: ignore[arg-type]
        pool_frames=pool_frames,  # type: ignore[arg-type]
        pictures=pictures,  # type: ignore[arg-type]
        seed=seed,
        limit=limit,
    )
    if dry_run:
        found = look_at(videos, options)
        left = [row for row in found if not row.get(FAILED)]
        echo(f"{len(left):,} of {len(found):,} videos would be taken.")
        at_once = calls_at_once(language) if concurrency is None else concurrency
        echo(render([estimate_table(estimates(left, picture_tokens), call_seconds, at_once)], "table"))
        return
    worker = engine_of(engine, address)
    speaker = load_language(language, **({} if prompts is None else {"prompts": prompts}))
    try:
        made = make_zerosight(
            videos,
            out,
            options,
            Encoders(vit_encoder, clip_encoder, sentence_encoder, device),
            speaker,
            name=name,
            title=title,
            review=review,
            engine=worker,
        )
    finally:
        report_usage(speaker)
    echo(render([stage_table(states_of(out))], "table"), err=True)
    if made.made.review_left:
        echo(left_alone(out / TABLE), err=True)
    echo(str(made.folder))
    echo(str(made.report))


def clips_command(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write: the folder of the videos.")],
    videos: Annotated[int, typer.Option("--videos", help="How many.", min=1)] = 20,
    first: Annotated[int, typer.Option("--first", help="Number of the first.", min=0)] = 0,
) -> None:
    """Write clips of shapes as video files, to try cir make zerosight on.

    Example: cir make clips --out clips --videos 20
    """
    from cir_datasets.shapes.clips import write_clips

    write_clips(out, videos, first=first)
    echo(str(out))


def _day(text: str) -> date | None:
    from datetime import date as day

    from cir_metrics.errors import CallError

    if text == "none":
        return None
    try:
        return day.fromisoformat(text)
    except ValueError as error:
        raise CallError(f"--after {text!r} is not a day. Fix: write 2022-03-31, or none.") from error
