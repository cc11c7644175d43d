"""`cir make zerosight`: a benchmark of videos."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import command, option
from cir_datasets.common.estimates import CALL_SECONDS, PICTURE_TOKENS
from cir_datasets.common.terminal import echo
from cir_datasets.construction.zerosight.choices import ZeroSightChoices
from submissions.commands import echo_use, report_usage, speaker_of
from submissions.running.method_options import LANGUAGE_HELP, MakingOptions

if TYPE_CHECKING:
    from datetime import date


class MakeZeroSightOptions(ZeroSightChoices, MakingOptions):
    """What `cir make zerosight` takes."""

    videos: Path = option(..., "Folder of videos, searched with its sub-folders.")
    vit_encoder: str = option(
        "shapes", "Encoder of the visual similarities; the paper: ViT-L/16 of ImageNet-21k."
    )
    clip_encoder: str = option("shapes", "Encoder of the semantic similarities; the paper: CLIP ViT-L/14.")
    sentence_encoder: str | None = option(
        None, "Encoder of captions; default: the one of --clip-encoder.", in_file=True
    )
    language: str = option("oracle", f"{LANGUAGE_HELP}; it looks and writes.")
    thresholds: str = option("paper", "paper, shapes, or a YAML file with the same fields.")
    reference_visual: float | None = option(
        None, "From this visual similarity on the later of two references goes.", in_file=True
    )
    reference_semantic: float | None = option(
        None, "From this semantic similarity on the later of two references goes.", in_file=True
    )
    target_visual: tuple[float, float] | None = option(
        None, "Band of a target's visual similarity to its reference.", in_file=True
    )
    target_semantic: tuple[float, float] | None = option(
        None, "Band of a target's semantic similarity to its reference.", in_file=True
    )
    mutual_visual: float | None = option(
        None, "From this visual similarity on the later of two targets goes.", in_file=True
    )
    neighbour: float | None = option(
        None, "Of `consensus: released`: similarity of captions that agree.", in_file=True
    )
    after: str = option(
        "2022-03-31", "Videos published after this day alone (2022-03-31), or none.", in_file=True
    )
    review: Path | None = option(None, "A filled-in review.csv; what follows it is made anew.")
    title: str | None = option(None, "Title for people; default: the name.", in_file=True)
    picture_tokens: int = option(PICTURE_TOKENS, "Of --dry-run: tokens of a picture.", min=1, in_file=True)
    call_seconds: float = option(CALL_SECONDS, "Of --dry-run: seconds of a call.", min=0.001, in_file=True)
    concurrency: int | None = option(
        None, "Of --dry-run: calls at once; default: those of --language.", min=1, in_file=True
    )


@command
def zerosight_command(options: MakeZeroSightOptions) -> None:
    """Make a benchmark of videos as ZeroSight was made: queries with positives and hard negatives.

    Frames at one a second; a model chooses references; targets are frames of the same video whose likeness
    lies in a band; a model writes a caption of each pair, and the captions that agree make the query. The
    same call goes on where a run was stopped; no question is asked twice.

    \b
    Example:
        cir make zerosight --videos clips --out my-frames --thresholds shapes --unknown-dates keep
        cir make zerosight --videos talks --out my-talks --clip-encoder openai/clip-vit-large-patch14 \\
            --vit-encoder FOLDER --language openai:gpt-4o,concurrency=8
    """
    from cir_datasets.common.stages import FAILED
    from cir_datasets.common.tables import render
    from cir_datasets.construction.report import stage_table
    from cir_datasets.construction.review.page import TABLE, left_alone
    from cir_datasets.construction.workspace import Workspace
    from cir_datasets.construction.zerosight.estimate import estimate
    from cir_datasets.construction.zerosight.options import Thresholds, ZeroSightOptions, load_thresholds
    from submissions.cluster import engine_of
    from submissions.language.loading import calls_at_once
    from submissions.making.zerosight import Encoders, look_at, make_zerosight

    changes = {name: getattr(options, name) for name in Thresholds.model_fields}
    settings = options.call(
        ZeroSightOptions,
        thresholds=load_thresholds(options.thresholds, **changes),
        after=_day(options.after),
    )
    if options.dry_run:
        found = look_at(options.videos, settings)
        left = [row for row in found if not row.get(FAILED)]
        echo(f"{len(left):,} of {len(found):,} videos would be taken.")
        at_once = calls_at_once(options.language) if options.concurrency is None else options.concurrency
        asked = estimate(left, options.picture_tokens, call_seconds=options.call_seconds, at_once=at_once)
        echo(render([asked.table()], "table"))
        return
    worker = engine_of(options.engine, options.address)
    speaker = speaker_of(options.language, options.prompts)
    looks = Encoders(options.vit_encoder, options.clip_encoder, options.sentence_encoder, options.device)
    try:
        made = options.call(make_zerosight, options=settings, encoders=looks, language=speaker, engine=worker)
    finally:
        report_usage(speaker)
    echo(render([stage_table(Workspace.existing(options.out).states())], "table"), err=True)
    if made.made.review_left:
        echo(left_alone(options.out / TABLE), err=True)
    echo(str(made.folder))
    echo(str(made.report))
    echo_use(made.folder)


def _day(text: str) -> date | None:
    from datetime import date as day

    from cir_metrics.errors import CallError

    if text == "none":
        return None
    try:
        return day.fromisoformat(text)
    except ValueError as error:
        raise CallError(f"--after {text!r} is not a day. Fix: write 2022-03-31, or none.") from error
