"""`cir train cirplant` and `cir train tirg`: two compositions, one trainer."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import command, option
from cir_datasets.common.terminal import echo
from submissions.commands.train_options import TrainsOnQueries, report_done

if TYPE_CHECKING:
    from submissions.training.triplet_plan import NetworkShape, Recipe

_RATE = "Learning rate of AdamW: that of the first step."


class CompositionOptions(TrainsOnQueries):
    """What both take."""

    recipe: str = option(
        "code",
        "What CIRPLANT's released code does (code) or its paper says (paper): distance, negatives, "
        "triplets, decay of the learning rate. The options below change one of these.",
        in_file=True,
    )
    triplets: int | None = option(
        None,
        "Negatives drawn for a query (code: 6, paper: 1); 0 takes all of the batch.",
        min=0,
        in_file=True,
    )
    together: int = option(
        1,
        "Triplets of one reference that a batch has at a time, at most half of it; more than 1 gives "
        "harder negatives.",
        min=1,
        in_file=True,
    )
    decay: str | None = option(
        None,
        "The linear decay: epoch (once an epoch by a step's share, as the code does; hardly decays) or "
        "step (after every step down to 0, as the paper says).",
        in_file=True,
    )
    hidden_size: int | None = option(
        None,
        "Hidden size: dimensions of words and features; default: cirplant 768, tirg 512.",
        min=1,
        in_file=True,
    )
    epochs: int = option(300, "Epochs.", min=1)
    epoch_steps: int | None = option(
        None,
        "Steps an epoch; default: images of the gallery by batch size, 529 on cirr/train.",
        min=1,
        in_file=True,
    )
    batch_size: int = option(32, "Batch: triplets of a step, drawn with replacement.", min=2, in_file=True)
    learning_rate: float = option(1e-5, _RATE)
    weight_decay: float = option(0.05, "Weight decay of AdamW, but for biases and norms.", in_file=True)
    clip: float = option(1.0, "Length that a gradient is cut to, above 0.", in_file=True)
    precision: str | None = option(
        None, "Mixed precision: float16 or bfloat16; default: float32.", in_file=True
    )
    validation: str | None = option(
        None, "Id of a benchmark that is measured on after each epoch; the best epoch's weights are kept."
    )
    hold_out: float = option(
        0.0,
        "Share of the references, from 0 to below 1, whose queries are measured on in place of "
        "--validation and not trained on.",
        in_file=True,
    )
    patience: int = option(
        0, "Epochs without a better recall that end the training; 0: none does.", min=0, in_file=True
    )
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


class CirplantOptions(CompositionOptions):
    """What `cir train cirplant` takes."""

    init: Path | None = option(
        None,
        "Folder of a BERT or OSCAR whose weights and words the training begins with; it gives the "
        "sizes. Default: at random, with the words of the captions.",
    )
    layers: int | None = option(None, "Layers; default: 12.", min=1, in_file=True)
    heads: int | None = option(None, "Attention heads; default: 12.", min=1, in_file=True)
    feed_forward: int | None = option(
        None, "Units of feed-forward blocks; default: four times --hidden-size.", min=1, in_file=True
    )
    dropout: float | None = option(None, "Dropout: that inside the transformer; default: 0.1.", in_file=True)


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
    _train_composition("cirplant", options)


class TirgOptions(CompositionOptions):
    """What `cir train tirg` takes."""

    learning_rate: float = option(1e-4, _RATE)


@command
def tirg_command(options: TirgOptions) -> None:
    """Train TIRG, the image's feature gated by image and text plus a residual, by CIRPLANT's trainer.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train tirg --benchmark shapes/train --encoder shapes --learning-rate 0.001 --epochs 2 --out FOLDER
    """
    _train_composition("tirg", options)


def _recipe(name: str, triplets: int | None, together: int, decay: str | None) -> Recipe:
    """The recipe of a name, with what the call changes."""
    from cir_metrics.errors import UnknownNameError, did_you_mean
    from submissions.training.triplet_plan import RECIPES

    if name not in RECIPES:
        hint = did_you_mean(name, tuple(RECIPES))
        raise UnknownNameError(f"no recipe {name!r}.{hint} Fix: use one of {', '.join(RECIPES)}.")
    found = RECIPES[name]
    return dataclasses.replace(
        found,
        triplets=found.triplets if triplets is None else triplets,
        together=together,
        decay=found.decay if decay is None else decay,
    )


def _sizes(name: str, options: CompositionOptions) -> NetworkShape:
    """The sizes of a network that begins at random, with what the call changes."""
    from cir_metrics.errors import CallError
    from submissions.training.triplet_plan import SHAPES

    sizes = {field.name: getattr(options, field.name, None) for field in dataclasses.fields(SHAPES[name])}
    chosen = {size: value for size, value in sizes.items() if value is not None}
    if chosen and getattr(options, "init", None) is not None:
        raise CallError(
            f"--init gives the sizes, and {', '.join(chosen)} too. Fix: leave one of the two out."
        )
    return dataclasses.replace(SHAPES[name], **chosen)


def _train_composition(name: str, options: CompositionOptions) -> None:
    """Train one of the compositions, describe its folder, and push it where that is asked for."""
    from submissions.training.composition_training import train_composition
    from submissions.training.model_card import check_push, check_report, describe_checkpoint, push_checkpoint

    recipe = _recipe(options.recipe, options.triplets, options.together, options.decay)
    shape = _sizes(name, options)
    hidden = False
    if options.push is not None:
        measured = (options.benchmark, options.validation, options.report)
        hidden = check_push(options.push, measured, even_private=options.even_private)
    if options.report is not None:
        check_report(options.report, options.images)
    encoder = options.loaded()

    def say(line: str) -> None:
        echo(line, err=True)

    done = options.call(
        train_composition,
        encoder=encoder,
        folder=options.out,
        composition=name,
        recipe=recipe,
        shape=shape,
        say=say,
    )
    describe_checkpoint(done.folder, encoder, report=options.report, images=options.images, say=say)
    report_done(done)
    if options.push is not None:
        say(push_checkpoint(done.folder, options.push, private=options.private, only_private=hidden))
