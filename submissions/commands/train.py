"""`cir train`: the heads of methods."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from cir_datasets.commands import CommandOfOptions, LoadsBenchmarks, command, option
from cir_datasets.common.terminal import echo
from submissions.training.training_options import (
    CirplantTraining,
    CompositionTraining,
    ConcatTraining,
    MagicLensTraining,
    Pic2WordTraining,
    TirgTraining,
)

if TYPE_CHECKING:
    from submissions.training.loop import Trained

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
        _check_names(options.get("benchmark"), options.get("validation"))
        try:
            command(*args, **options)
        except KeyboardInterrupt:
            echo("interrupted; the same command goes on from here.", err=True)
            raise typer.Exit(_INTERRUPTED) from None

    return run


def _check_names(*benchmarks: str | None) -> None:
    """Refuse unknown names before the libraries of a training are imported, which takes seconds."""
    from cir_datasets.registry import members_of, spec

    for name in filter(None, benchmarks):
        spec(members_of(name)[0])


class ConcatOptions(ConcatTraining, LoadsBenchmarks):
    """What `cir train concat` takes."""


@command
def concat_command(options: ConcatOptions) -> None:
    """Train CIRR's concatenation baseline: a perceptron on the vectors of image and caption.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train concat --benchmark shapes/train --encoder shapes --out FOLDER
    """
    from submissions.training.concat_training import train_concat

    report_done(train_concat(options))


class Pic2WordOptions(Pic2WordTraining, LoadsBenchmarks):
    """What `cir train pic2word` takes."""


@command
def pic2word_command(options: Pic2WordOptions) -> None:
    """Train Pic2Word's mapping network on pictures without captions.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train pic2word --benchmark shapes/train --encoder shapes --out FOLDER
    """
    from submissions.training.pic2word_training import train_pic2word

    report_done(train_pic2word(options))


class MagicLensOptions(MagicLensTraining, LoadsBenchmarks):
    """What `cir train magiclens` takes."""


@command
def magiclens_command(options: MagicLensOptions) -> None:
    """Train MagicLens' fusion of image and caption, on top of a CLIP that stays as it is.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train magiclens --benchmark shapes/train --encoder shapes --out FOLDER
    """
    from submissions.training.magiclens_training import train_magiclens

    report_done(train_magiclens(options))


class DescribedOptions(CompositionTraining, LoadsBenchmarks):
    """What is done with a checkpoint of CIRPLANT or TIRG."""

    report: str | None = option(
        None,
        "Id of a benchmark that is ranked and scored at the end, for the model card and .eval_results.",
        in_file=True,
    )
    push: str | None = option(None, "Push to this repository on the Hub, ORG/NAME, of models.", in_file=True)
    private: bool = option(False, "Make what is new private: the repository of `push`.", in_file=True)
    even_private: bool = option(
        False,
        "Push although the card of a benchmark of yours says private: true; to a private repository.",
        in_file=True,
    )


class CirplantOptions(CirplantTraining, DescribedOptions):
    """What `cir train cirplant` takes."""


@command
def cirplant_command(options: CirplantOptions) -> None:
    """Train CIRPLANT: a BERT that reads the caption and the image's vector, and gives the target's.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train cirplant --write-config > sizes.yaml
        cir train cirplant --benchmark shapes/train --encoder shapes --config sizes.yaml \\
            --learning-rate 0.001 --epochs 2 --out FOLDER
    """
    _train_composition(options)


class TirgOptions(TirgTraining, DescribedOptions):
    """What `cir train tirg` takes."""


@command
def tirg_command(options: TirgOptions) -> None:
    """Train TIRG, the image's feature gated by image and text plus a residual, by CIRPLANT's trainer.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train tirg --benchmark shapes/train --encoder shapes --learning-rate 0.001 --epochs 2 --out FOLDER
    """
    _train_composition(options)


def _train_composition(options: DescribedOptions) -> None:
    """Train one of the compositions, describe its folder, and push it where that is asked for."""
    from submissions.training.composition_training import train_composition
    from submissions.training.model_card import check_push, check_report, describe_checkpoint, push_checkpoint

    hidden = False
    if options.push is not None:
        measured = (options.benchmark, options.validation, options.report)
        hidden = check_push(options.push, measured, even_private=options.even_private)
    if options.report is not None:
        check_report(options.report, options.images)
    say = functools.partial(echo, err=True)
    training = replace(options, encoder=options.loaded())
    done = train_composition(training, say=say)
    describe_checkpoint(done.folder, training.loaded(), report=options.report, images=options.images, say=say)
    report_done(done)
    if options.push is not None:
        say(push_checkpoint(done.folder, options.push, private=options.private, only_private=hidden))


def report_done(done: Trained) -> None:
    """Print the folder; the course of the training goes to stderr."""
    if done.resumed_at == done.steps:
        echo(f"{done.folder}: this training is done already.", err=True)
    elif done.resumed_at:
        echo(f"went on at step {done.resumed_at:,} of {done.steps:,}.", err=True)
    echo(f"{done.steps:,} steps: loss {done.first_loss:.4f} -> {done.last_loss:.4f}", err=True)
    echo(str(done.folder))
