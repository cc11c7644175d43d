"""`cir train cirplant` and `cir train tirg`: two compositions, one trainer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cir_datasets.commands.options import DataDirAnywhere, Images, NoChecksAnywhere
from cir_datasets.common.terminal import echo
from submissions.commands.options import Device, Revision
from submissions.commands.train_options import (
    BenchmarkOption,
    CaptionRuleOption,
    EncoderOption,
    OutOption,
    SeedOption,
    ThreadsOption,
    report_done,
)

if TYPE_CHECKING:
    from submissions.training.triplet_plan import NetworkShape, Recipe

RecipeOption = Annotated[
    str,
    typer.Option(
        "--recipe",
        help="What CIRPLANT's released code does (code) or its paper says (paper): distance, negatives, "
        "triplets, decay of the learning rate. The options below change one of these.",
    ),
]
NegativesOption = Annotated[
    int | None,
    typer.Option(
        "--triplets", min=0, help="Negatives drawn for a query (code: 6, paper: 1); 0 takes all of the batch."
    ),
]
TogetherOption = Annotated[
    int,
    typer.Option(
        "--together",
        min=1,
        help="Triplets of one reference that a batch has at a time, at most half of it; more than 1 gives "
        "harder negatives.",
    ),
]
DecayScheduleOption = Annotated[
    str | None,
    typer.Option(
        "--decay",
        help="The linear decay: epoch (once an epoch by a step's share, as the code does; hardly decays) or "
        "step (after every step down to 0, as the paper says).",
    ),
]
EpochsOption = Annotated[int, typer.Option("--epochs", min=1, help="Epochs.")]
EpochStepsOption = Annotated[
    int | None,
    typer.Option(
        "--epoch-steps",
        min=1,
        help="Steps an epoch; default: images of the gallery by batch size, 529 on cirr/train.",
    ),
]
ClipOption = Annotated[float, typer.Option("--clip", help="Length that a gradient is cut to, above 0.")]
PrecisionOption = Annotated[
    str | None,
    typer.Option("--precision", help="Mixed precision: float16 or bfloat16; default: float32."),
]
ValidationOption = Annotated[
    str | None,
    typer.Option(
        "--validation",
        help="Id of a benchmark that is measured on after each epoch; the best epoch's weights are kept.",
    ),
]
HoldOutOption = Annotated[
    float,
    typer.Option(
        "--hold-out",
        help="Share of the references, from 0 to below 1, whose queries are measured on in place of "
        "--validation and not trained on.",
    ),
]
PatienceOption = Annotated[
    int,
    typer.Option(
        "--patience", min=0, help="Epochs without a better recall that end the training; 0: none does."
    ),
]
TokenWidthOption = Annotated[
    int | None,
    typer.Option(
        "--hidden-size",
        min=1,
        help="Hidden size: dimensions of words and features; default: cirplant 768, tirg 512.",
    ),
]
CompositionRateOption = Annotated[
    float, typer.Option("--learning-rate", help="Learning rate of AdamW: that of the first step.")
]
CompositionDecayOption = Annotated[
    float, typer.Option("--weight-decay", help="Weight decay of AdamW, but for biases and norms.")
]
CompositionBatchOption = Annotated[
    int, typer.Option("--batch-size", min=2, help="Batch: triplets of a step, drawn with replacement.")
]
ReportOption = Annotated[
    str | None,
    typer.Option(
        "--report",
        help="Id of a benchmark that is ranked and scored at the end, for the model card and .eval_results.",
    ),
]
PushOption = Annotated[
    str | None, typer.Option("--push", help="Push to this repository on the Hub, ORG/NAME, of models.")
]
PrivateOption = Annotated[
    bool, typer.Option("--private", help="Make what is new private: the repository of --push.")
]
EvenPrivateOption = Annotated[
    bool,
    typer.Option(
        "--even-private",
        help="Push although the card of a benchmark of yours says private: true; to a private repository.",
    ),
]


def cirplant_command(
    benchmark: BenchmarkOption,
    out: OutOption,
    encoder: EncoderOption = "shapes",
    revision: Revision = None,
    images: Images = None,
    caption_rule: CaptionRuleOption = None,
    recipe: RecipeOption = "code",
    triplets: NegativesOption = None,
    together: TogetherOption = 1,
    decay: DecayScheduleOption = None,
    init: Annotated[
        Path | None,
        typer.Option(
            "--init",
            help="Folder of a BERT or OSCAR whose weights and words the training begins with; it gives the "
            "sizes. Default: at random, with the words of the captions.",
        ),
    ] = None,
    hidden_size: TokenWidthOption = None,
    layers: Annotated[int | None, typer.Option("--layers", min=1, help="Layers; default: 12.")] = None,
    heads: Annotated[int | None, typer.Option("--heads", min=1, help="Attention heads; default: 12.")] = None,
    feed_forward: Annotated[
        int | None,
        typer.Option(
            "--feed-forward", min=1, help="Units of feed-forward blocks; default: four times --hidden-size."
        ),
    ] = None,
    dropout: Annotated[
        float | None, typer.Option("--dropout", help="Dropout: that inside the transformer; default: 0.1.")
    ] = None,
    epochs: EpochsOption = 300,
    epoch_steps: EpochStepsOption = None,
    batch_size: CompositionBatchOption = 32,
    learning_rate: CompositionRateOption = 1e-5,
    weight_decay: CompositionDecayOption = 0.05,
    clip: ClipOption = 1.0,
    precision: PrecisionOption = None,
    validation: ValidationOption = None,
    hold_out: HoldOutOption = 0.0,
    patience: PatienceOption = 0,
    seed: SeedOption = 0,
    device: Device = "auto",
    threads: ThreadsOption = None,
    report: ReportOption = None,
    push: PushOption = None,
    private: PrivateOption = False,
    even_private: EvenPrivateOption = False,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Train CIRPLANT: a BERT that reads the caption and the image's vector, and gives the target's.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train cirplant --benchmark shapes/train --encoder shapes --layers 2 --hidden-size 128 --heads 4 \\
            --learning-rate 0.001 --epochs 2 --out FOLDER
    """
    _train_composition("cirplant", locals())


def tirg_command(
    benchmark: BenchmarkOption,
    out: OutOption,
    encoder: EncoderOption = "shapes",
    revision: Revision = None,
    images: Images = None,
    caption_rule: CaptionRuleOption = None,
    recipe: RecipeOption = "code",
    triplets: NegativesOption = None,
    together: TogetherOption = 1,
    decay: DecayScheduleOption = None,
    hidden_size: TokenWidthOption = None,
    epochs: EpochsOption = 300,
    epoch_steps: EpochStepsOption = None,
    batch_size: CompositionBatchOption = 32,
    learning_rate: CompositionRateOption = 1e-4,
    weight_decay: CompositionDecayOption = 0.05,
    clip: ClipOption = 1.0,
    precision: PrecisionOption = None,
    validation: ValidationOption = None,
    hold_out: HoldOutOption = 0.0,
    patience: PatienceOption = 0,
    seed: SeedOption = 0,
    device: Device = "auto",
    threads: ThreadsOption = None,
    report: ReportOption = None,
    push: PushOption = None,
    private: PrivateOption = False,
    even_private: EvenPrivateOption = False,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Train TIRG, the image's feature gated by image and text plus a residual, by CIRPLANT's trainer.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train tirg --benchmark shapes/train --encoder shapes --hidden-size 128 --learning-rate 0.001 \\
            --epochs 2 --out FOLDER
    """
    _train_composition("tirg", locals())


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


def _sizes(name: str, given: Mapping[str, Any]) -> NetworkShape:
    """The sizes of a network that begins at random, with what the call changes."""
    from cir_metrics.errors import CallError
    from submissions.training.triplet_plan import SHAPES

    fields = [field.name for field in dataclasses.fields(SHAPES[name])]
    chosen = {field: given[field] for field in fields if given.get(field) is not None}
    if chosen and given.get("init") is not None:
        raise CallError(
            f"--init gives the sizes, and {', '.join(chosen)} too. Fix: leave one of the two out."
        )
    return dataclasses.replace(SHAPES[name], **chosen)


_AS_THEY_ARE = (
    "epochs",
    "epoch_steps",
    "batch_size",
    "learning_rate",
    "weight_decay",
    "clip",
    "precision",
    "validation",
    "hold_out",
    "patience",
    "caption_rule",
    "images",
    "seed",
    "device",
)
"""Options that `train_composition` has by the same names."""


def _train_composition(name: str, given: Mapping[str, Any]) -> None:
    """Train one of the compositions, describe its folder, and push it where that is asked for.

    Args:
        name: the composition's.
        given: the options of its command, by the names of its parameters.
    """
    from submissions.encoders.loading import load_encoder
    from submissions.training.composition_training import train_composition
    from submissions.training.model_card import check_push, check_report, describe_checkpoint, push_checkpoint

    benchmark, report, push, images = (given[each] for each in ("benchmark", "report", "push", "images"))
    recipe = _recipe(given["recipe"], given["triplets"], given["together"], given["decay"])
    shape = _sizes(name, given)
    hidden = False
    if push is not None:
        measured = (benchmark, given["validation"], report)
        hidden = check_push(push, measured, even_private=given["even_private"])
    if report is not None:
        check_report(report, images)
    loaded = load_encoder(
        given["encoder"], revision=given["revision"], device=given["device"], threads=given["threads"]
    )

    def say(line: str) -> None:
        echo(line, err=True)

    done = train_composition(
        loaded,
        benchmark,
        given["out"],
        composition=name,
        recipe=recipe,
        shape=shape,
        init=given.get("init"),
        say=say,
        **{each: given[each] for each in _AS_THEY_ARE},
    )
    describe_checkpoint(done.folder, loaded, report=report, images=images, say=say)
    report_done(done)
    if push is not None:
        say(push_checkpoint(done.folder, push, private=given["private"], only_private=hidden))
