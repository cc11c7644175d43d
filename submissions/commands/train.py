"""`cir train`: the heads of methods, and the encoder that comes with the package."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cir_datasets.commands import CommandOfOptions, benchmark_values, command, option
from cir_datasets.common.terminal import echo
from submissions.commands.train_compositions import cirplant_command, tirg_command
from submissions.commands.train_options import Trains, TrainsBySteps, TrainsOnQueries, report_done

if TYPE_CHECKING:
    from submissions.embeddings.pictures import Pictures

_INTERRUPTED = 130
"""What a shell reports of a program that Ctrl-C has ended."""


def train_commands() -> typer.Typer:
    """The group `cir train`."""
    group = typer.Typer(help="Train the head of a method, or the shapes encoder.", no_args_is_help=True)
    group.command("concat", cls=CommandOfOptions)(_resumable(concat_command))
    group.command("pic2word", cls=CommandOfOptions)(_resumable(pic2word_command))
    group.command("magiclens", cls=CommandOfOptions)(_resumable(magiclens_command))
    group.command("cirplant", cls=CommandOfOptions)(_resumable(cirplant_command))
    group.command("tirg", cls=CommandOfOptions)(_resumable(tirg_command))
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


class ConcatOptions(TrainsBySteps, TrainsOnQueries):
    """What `cir train concat` takes."""

    loss: str = option(
        "soft_triplet", "soft_triplet (the paper's choice on CIRR) or batch_softmax.", in_file=True
    )
    hidden_size: int | None = option(
        None, "Hidden size: units of the layer between; default: twice the dimensions.", min=1, in_file=True
    )


@command
def concat_command(options: ConcatOptions) -> None:
    """Train CIRR's concatenation baseline: a perceptron on the vectors of image and caption.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train concat --benchmark shapes/train --encoder shapes --out FOLDER
    """
    from submissions.training.concat_training import PLAN, train_concat

    plan = options.changed(PLAN)
    encoder = options.loaded()
    report_done(options.call(train_concat, encoder=encoder, folder=options.out, plan=plan))


class Pic2WordOptions(TrainsBySteps, Trains):
    """What `cir train pic2word` takes."""

    images: Path | None = option(
        None,
        "Folder of the images, which are trained on with those of its sub-folders; with "
        "--benchmark the benchmark's, default: below CIR_IMAGES.",
    )
    benchmark: str | None = option(
        None, "Id of the benchmark, whose gallery is trained on.", "-b", values=benchmark_values
    )
    hidden_size: int = option(512, "Hidden size: units of the two layers between.", min=1, in_file=True)
    dropout: float = option(
        0.1, "Dropout: share of units left out in training, from 0 to below 1.", in_file=True
    )


@command
def pic2word_command(options: Pic2WordOptions) -> None:
    """Train Pic2Word's mapping network on pictures without captions.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train pic2word --benchmark shapes/train --encoder shapes --out FOLDER
    """
    from submissions.training.pic2word_training import PLAN, train_pic2word

    plan = options.changed(PLAN)
    pictures = _pictures(options.benchmark, options.images)
    encoder = options.loaded()
    folder = options.out
    report_done(options.call(train_pic2word, encoder=encoder, pictures=pictures, folder=folder, plan=plan))


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


class MagicLensOptions(TrainsBySteps, TrainsOnQueries):
    """What `cir train magiclens` takes."""

    layers: int = option(4, "Layers, of self-attention.", min=1, in_file=True)
    heads: int = option(8, "Attention heads; they divide the encoder's dimensions.", min=1, in_file=True)
    feed_forward: int | None = option(
        None, "Units of feed-forward blocks; default: four times the dimensions.", min=1, in_file=True
    )


@command
def magiclens_command(options: MagicLensOptions) -> None:
    """Train MagicLens' fusion of image and caption, on top of a CLIP that stays as it is.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train magiclens --benchmark shapes/train --encoder shapes --out FOLDER
    """
    from submissions.training.magiclens_training import PLAN, train_magiclens

    plan = options.changed(PLAN)
    done = train_magiclens(
        options.loaded(),
        options.benchmark,
        options.out,
        plan=plan,
        layers=options.layers,
        heads=options.heads,
        feed_forward=options.feed_forward,
        caption_rule=options.caption_rule,
        images=options.images,
    )
    report_done(done)
