"""`cir train`: the heads of methods, and the encoder that comes with the package."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cir_datasets.commands.options import DataDirAnywhere, Images, NoChecksAnywhere, benchmark_values
from cir_datasets.common.terminal import echo
from submissions.commands.options import Device, Revision
from submissions.commands.train_compositions import cirplant_command, tirg_command
from submissions.commands.train_options import (
    BatchOption,
    BenchmarkOption,
    CaptionRuleOption,
    DecayOption,
    EncoderOption,
    OutOption,
    RateOption,
    SeedOption,
    StepsOption,
    ThreadsOption,
    report_done,
)

if TYPE_CHECKING:
    from submissions.embeddings.pictures import Pictures
    from submissions.training.loop import Plan

_INTERRUPTED = 130
"""What a shell reports of a program that Ctrl-C has ended."""


def train_commands() -> typer.Typer:
    """The group `cir train`."""
    group = typer.Typer(help="Train the head of a method, or the shapes encoder.", no_args_is_help=True)
    group.command("concat")(_resumable(concat_command))
    group.command("pic2word")(_resumable(pic2word_command))
    group.command("magiclens")(_resumable(magiclens_command))
    group.command("cirplant")(_resumable(cirplant_command))
    group.command("tirg")(_resumable(tirg_command))
    return group


def _resumable(command: Callable[..., None]) -> Callable[..., None]:
    """A command that says, when Ctrl-C ends it, that it goes on from there."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt:
            echo("interrupted; the same command goes on from here.", err=True)
            raise typer.Exit(_INTERRUPTED) from None

    return run


def concat_command(
    benchmark: BenchmarkOption,
    out: OutOption,
    encoder: EncoderOption = "shapes",
    revision: Revision = None,
    images: Images = None,
    caption_rule: CaptionRuleOption = None,
    loss: Annotated[
        str, typer.Option("--loss", help="soft_triplet (the paper's choice on CIRR) or batch_softmax.")
    ] = "soft_triplet",
    hidden_size: Annotated[
        int | None,
        typer.Option(
            "--hidden-size",
            min=1,
            help="Hidden size: units of the layer between; default: twice the dimensions.",
        ),
    ] = None,
    steps: StepsOption = None,
    batch_size: BatchOption = None,
    learning_rate: RateOption = None,
    weight_decay: DecayOption = None,
    seed: SeedOption = 0,
    device: Device = "auto",
    threads: ThreadsOption = None,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Train CIRR's concatenation baseline: a perceptron on the vectors of image and caption.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train concat --benchmark shapes/train --encoder shapes --out FOLDER
    """
    from submissions.encoders.loading import load_encoder
    from submissions.training.concat_training import PLAN, train_concat

    plan = _changed_plan(PLAN, steps, batch_size, learning_rate, weight_decay, seed)
    loaded = load_encoder(encoder, revision=revision, device=device, threads=threads)
    done = train_concat(
        loaded,
        benchmark,
        out,
        plan=plan,
        loss=loss,
        hidden_size=hidden_size,
        caption_rule=caption_rule,
        images=images,
    )
    report_done(done)


def pic2word_command(
    out: OutOption,
    images: Annotated[
        Path | None,
        typer.Option(
            "--images",
            help="Folder of the images, which are trained on with those of its sub-folders; with "
            "--benchmark the benchmark's, default: below CIR_IMAGES.",
        ),
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option(
            "--benchmark",
            "-b",
            autocompletion=benchmark_values,
            help="Id of the benchmark, whose gallery is trained on.",
        ),
    ] = None,
    encoder: EncoderOption = "shapes",
    revision: Revision = None,
    hidden_size: Annotated[
        int, typer.Option("--hidden-size", min=1, help="Hidden size: units of the two layers between.")
    ] = 512,
    dropout: Annotated[
        float,
        typer.Option("--dropout", help="Dropout: share of units left out in training, from 0 to below 1."),
    ] = 0.1,
    steps: StepsOption = None,
    batch_size: BatchOption = None,
    learning_rate: RateOption = None,
    weight_decay: DecayOption = None,
    seed: SeedOption = 0,
    device: Device = "auto",
    threads: ThreadsOption = None,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Train Pic2Word's mapping network on pictures without captions.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train pic2word --benchmark shapes/train --encoder shapes --out FOLDER
    """
    from submissions.encoders.loading import load_encoder
    from submissions.training.pic2word_training import PLAN, train_pic2word

    plan = _changed_plan(PLAN, steps, batch_size, learning_rate, weight_decay, seed)
    pictures = _pictures(benchmark, images)
    loaded = load_encoder(encoder, revision=revision, device=device, threads=threads)
    report_done(train_pic2word(loaded, pictures, out, plan=plan, hidden_size=hidden_size, dropout=dropout))


def _pictures(benchmark: str | None, images: Path | None) -> Pictures:
    """What is trained on: a benchmark's gallery, or all pictures below a folder."""
    from cir_metrics.errors import CallError
    from submissions.embeddings.pictures import pictures_in, pictures_of

    if benchmark is not None:
        import cir_datasets

        return pictures_of(cir_datasets.load(benchmark), images=images)
    if images is None:
        raise CallError("nothing to train on. Fix: add --images FOLDER or --benchmark NAME.")
    return pictures_in(images)


def magiclens_command(
    benchmark: BenchmarkOption,
    out: OutOption,
    encoder: EncoderOption = "shapes",
    revision: Revision = None,
    images: Images = None,
    caption_rule: CaptionRuleOption = None,
    layers: Annotated[int, typer.Option("--layers", min=1, help="Layers, of self-attention.")] = 4,
    heads: Annotated[
        int, typer.Option("--heads", min=1, help="Attention heads; they divide the encoder's dimensions.")
    ] = 8,
    feed_forward: Annotated[
        int | None,
        typer.Option(
            "--feed-forward", min=1, help="Units of feed-forward blocks; default: four times the dimensions."
        ),
    ] = None,
    steps: StepsOption = None,
    batch_size: BatchOption = None,
    learning_rate: RateOption = None,
    weight_decay: DecayOption = None,
    seed: SeedOption = 0,
    device: Device = "auto",
    threads: ThreadsOption = None,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Train MagicLens' fusion of image and caption, on top of a CLIP that stays as it is.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train magiclens --benchmark shapes/train --encoder shapes --out FOLDER
    """
    from submissions.encoders.loading import load_encoder
    from submissions.training.magiclens_training import PLAN, train_magiclens

    plan = _changed_plan(PLAN, steps, batch_size, learning_rate, weight_decay, seed)
    loaded = load_encoder(encoder, revision=revision, device=device, threads=threads)
    done = train_magiclens(
        loaded,
        benchmark,
        out,
        plan=plan,
        layers=layers,
        heads=heads,
        feed_forward=feed_forward,
        caption_rule=caption_rule,
        images=images,
    )
    report_done(done)


def _changed_plan(
    plan: Plan,
    steps: int | None,
    batch_size: int | None,
    learning_rate: float | None,
    weight_decay: float | None,
    seed: int,
) -> Plan:
    """A plan with the numbers that the call gives."""
    return dataclasses.replace(
        plan,
        steps=steps or plan.steps,
        batch_size=batch_size or plan.batch_size,
        learning_rate=plan.learning_rate if learning_rate is None else learning_rate,
        weight_decay=plan.weight_decay if weight_decay is None else weight_decay,
        seed=seed,
    )
