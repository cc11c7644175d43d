"""`cir train`: the heads of methods, and the encoder that comes with the package."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cir_metrics.terminal import echo

if TYPE_CHECKING:
    from submissions.embeddings.pictures import Pictures
    from submissions.training.loop import Plan, Trained
    from submissions.training.triplet_plan import Recipe

_INTERRUPTED = 130
"""What a shell reports of a program that Ctrl-C has ended."""

EncoderOption = Annotated[
    str,
    typer.Option(
        "--encoder",
        help="Encoder that the head stands on: shapes (shipped), a folder in Hugging Face format, or a name "
        "on the Hub.",
    ),
]
RevisionOption = Annotated[str | None, typer.Option("--revision", help="The encoder's commit on the Hub.")]
OutOption = Annotated[
    Path, typer.Option("--out", "-o", help="Folder for the checkpoint; an unfinished training goes on there.")
]
BenchmarkOption = Annotated[
    str, typer.Option("--benchmark", "-b", help="Id of the benchmark to train on, such as cirr/train.")
]
ImagesOption = Annotated[
    Path | None,
    typer.Option("--images", help="Folder of the benchmark's images; default: below CIR_IMAGES."),
]
CaptionRuleOption = Annotated[
    str | None,
    typer.Option("--caption-rule", help="How several captions of a query become text, such as trim_and."),
]
StepsOption = Annotated[int | None, typer.Option("--steps", min=1, help="Optimiser steps.")]
BatchOption = Annotated[int | None, typer.Option("--batch-size", min=2, help="Rows a step.")]
RateOption = Annotated[float | None, typer.Option("--learning-rate", help="Highest learning rate of AdamW.")]
DecayOption = Annotated[float | None, typer.Option("--weight-decay", help="Weight decay of AdamW.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of weights, batches and dropout.")]
DeviceOption = Annotated[
    str, typer.Option("--device", help="Where the encoder is: auto, cpu, cuda, cuda:1, mps.")
]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, help="Processor threads; default: PyTorch's choice.")
]


def train_commands() -> typer.Typer:
    """The group `cir train`."""
    group = typer.Typer(help="Train the head of a method, or the shapes encoder.", no_args_is_help=True)
    group.command("concat")(_resumable(concat_command))
    group.command("pic2word")(_resumable(pic2word_command))
    group.command("magiclens")(_resumable(magiclens_command))
    group.command("cirplant")(_resumable(cirplant_command))
    group.command("tirg")(_resumable(tirg_command))
    group.command("shapes")(_resumable(shapes_command))
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
    revision: RevisionOption = None,
    images: ImagesOption = None,
    caption_rule: CaptionRuleOption = None,
    loss: Annotated[
        str, typer.Option("--loss", help="soft_triplet (the paper's choice on CIRR) or batch_softmax.")
    ] = "soft_triplet",
    hidden_size: Annotated[
        int | None,
        typer.Option(
            "--hidden-size", min=1, help="Units of the layer between; default: twice the dimensions."
        ),
    ] = None,
    steps: StepsOption = None,
    batch_size: BatchOption = None,
    learning_rate: RateOption = None,
    weight_decay: DecayOption = None,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
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
            help="Folder whose pictures are trained on, with its sub-folders; with --benchmark the folder of "
            "the benchmark's images, default: below CIR_IMAGES.",
        ),
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option("--benchmark", "-b", help="Id of the benchmark whose gallery is trained on."),
    ] = None,
    encoder: EncoderOption = "shapes",
    revision: RevisionOption = None,
    hidden_size: Annotated[
        int, typer.Option("--hidden-size", min=1, help="Units of the two layers between.")
    ] = 512,
    dropout: Annotated[
        float, typer.Option("--dropout", help="Share of units left out in training, from 0 to below 1.")
    ] = 0.1,
    steps: StepsOption = None,
    batch_size: BatchOption = None,
    learning_rate: RateOption = None,
    weight_decay: DecayOption = None,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
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
    revision: RevisionOption = None,
    images: ImagesOption = None,
    caption_rule: CaptionRuleOption = None,
    layers: Annotated[int, typer.Option("--layers", min=1, help="Layers of self-attention.")] = 4,
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
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
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
        help="Triplets of one reference that a batch has at a time; more than 1 gives harder negatives.",
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
ClipOption = Annotated[float, typer.Option("--clip", help="Length that a gradient is cut to.")]
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
    int | None, typer.Option("--hidden-size", min=1, help="Dimensions of words and features.")
]
CompositionRateOption = Annotated[
    float, typer.Option("--learning-rate", help="Learning rate of AdamW at the first step.")
]
CompositionDecayOption = Annotated[
    float, typer.Option("--weight-decay", help="Weight decay of AdamW, but for biases and norms.")
]
CompositionBatchOption = Annotated[
    int, typer.Option("--batch-size", min=2, help="Triplets a step, drawn with replacement.")
]
ReportOption = Annotated[
    str | None,
    typer.Option(
        "--report",
        help="Id of a benchmark that is ranked and scored at the end, for the model card and .eval_results.",
    ),
]
PushOption = Annotated[
    str | None, typer.Option("--push", help="ORG/NAME: also upload the folder to this model repository.")
]
PrivateOption = Annotated[
    bool, typer.Option("--private", help="Make the repository private, where --push makes it.")
]


def cirplant_command(
    benchmark: BenchmarkOption,
    out: OutOption,
    encoder: EncoderOption = "shapes",
    revision: RevisionOption = None,
    images: ImagesOption = None,
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
        float | None, typer.Option("--dropout", help="Dropout inside the transformer; default: 0.1.")
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
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    report: ReportOption = None,
    push: PushOption = None,
    private: PrivateOption = False,
) -> None:
    """Train CIRPLANT: a BERT that reads the caption and the image's vector, and gives the target's.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train cirplant --benchmark shapes/train --encoder shapes --layers 2 --hidden-size 128 --heads 4 \\
            --learning-rate 0.001 --epochs 2 --out FOLDER
    """
    from cir_metrics.errors import CallError
    from submissions.training.triplet_plan import NetworkShape

    given = {
        "hidden_size": hidden_size,
        "layers": layers,
        "heads": heads,
        "feed_forward": feed_forward,
        "dropout": dropout,
    }
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if init is not None and chosen:
        raise CallError(
            f"--init gives the sizes, and {', '.join(chosen)} too. Fix: leave one of the two out."
        )
    _train_composition(
        "cirplant",
        benchmark,
        out,
        encoder=(encoder, revision, device, threads),
        recipe=_recipe(recipe, triplets, together, decay),
        published=(report, push, private),
        shape=NetworkShape(**chosen) if init is None else None,
        init=init,
        epochs=epochs,
        epoch_steps=epoch_steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        clip=clip,
        precision=precision,
        validation=validation,
        hold_out=hold_out,
        patience=patience,
        caption_rule=caption_rule,
        images=images,
        seed=seed,
    )


def tirg_command(
    benchmark: BenchmarkOption,
    out: OutOption,
    encoder: EncoderOption = "shapes",
    revision: RevisionOption = None,
    images: ImagesOption = None,
    caption_rule: CaptionRuleOption = None,
    recipe: RecipeOption = "code",
    triplets: NegativesOption = None,
    together: TogetherOption = 1,
    decay: DecayScheduleOption = None,
    hidden_size: TokenWidthOption = 512,
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
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    report: ReportOption = None,
    push: PushOption = None,
    private: PrivateOption = False,
) -> None:
    """Train TIRG, the image's feature gated by image and text plus a residual, by CIRPLANT's trainer.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train tirg --benchmark shapes/train --encoder shapes --hidden-size 128 --learning-rate 0.001 \\
            --epochs 2 --out FOLDER
    """
    from submissions.training.triplet_plan import NetworkShape

    _train_composition(
        "tirg",
        benchmark,
        out,
        encoder=(encoder, revision, device, threads),
        recipe=_recipe(recipe, triplets, together, decay),
        published=(report, push, private),
        shape=NetworkShape(hidden_size=hidden_size or 512, heads=1),
        epochs=epochs,
        epoch_steps=epoch_steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        clip=clip,
        precision=precision,
        validation=validation,
        hold_out=hold_out,
        patience=patience,
        caption_rule=caption_rule,
        images=images,
        seed=seed,
    )


def _recipe(name: str, triplets: int | None, together: int, decay: str | None) -> Recipe:
    """The recipe of a name, with what the call changes."""
    from cir_metrics.errors import UnknownNameError, did_you_mean
    from submissions.training.triplet_plan import RECIPES

    if name not in RECIPES:
        hint = did_you_mean(name, tuple(RECIPES))
        raise UnknownNameError(f"no recipe {name!r}.{hint} There are {', '.join(RECIPES)}.")
    found = RECIPES[name]
    return dataclasses.replace(
        found,
        triplets=found.triplets if triplets is None else triplets,
        together=together,
        decay=found.decay if decay is None else decay,
    )


def _train_composition(
    name: str,
    benchmark: str,
    out: Path,
    *,
    encoder: tuple[str, str | None, str, int | None],
    recipe: Recipe,
    published: tuple[str | None, str | None, bool],
    **options: Any,
) -> None:
    """Train one of the compositions, describe its folder, and push it where that is asked for."""
    from submissions.encoders.loading import load_encoder
    from submissions.training.composition_training import train_composition
    from submissions.training.model_card import check_repository, describe_checkpoint, push_checkpoint

    model, revision, device, threads = encoder
    report, push, private = published
    if push is not None:
        check_repository(push)
    loaded = load_encoder(model, revision=revision, device=device, threads=threads)

    def say(line: str) -> None:
        echo(line, err=True)

    done = train_composition(
        loaded, benchmark, out, composition=name, recipe=recipe, device=device, say=say, **options
    )
    describe_checkpoint(done.folder, loaded, report=report, images=options["images"], say=say)
    report_done(done)
    if push is not None:
        say(push_checkpoint(done.folder, push, private=private))


def shapes_command(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder to write; an unfinished training goes on there.")
    ] = Path("shapes_encoder"),
    steps: Annotated[int, typer.Option("--steps", min=1, help="Optimiser steps.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of weights, batches and captions.")] = 0,
    threads: Annotated[
        int, typer.Option("--threads", min=1, help="Processor threads; part of the recipe.")
    ] = 1,
) -> None:
    """Train the encoder that comes with the package, and score it on shapes.

    The folder is printed. Stopped and called again, the training goes on from its last epoch or half minute.

    \b
    Example:
        cir train shapes --out shapes_encoder
    """
    from submissions.training.shapes.recipe import Order
    from submissions.training.shapes.training import train_shapes

    echo(f"{out}: drawing the pictures of shapes/train, then {steps:,} steps ...", err=True)
    echo(str(train_shapes(out, Order(steps, seed, threads))))


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


def report_done(done: Trained) -> None:
    """Print the folder; the course of the training goes to stderr."""
    if done.resumed_at == done.steps:
        echo(f"{done.folder}: this training is done already.", err=True)
    elif done.resumed_at:
        echo(f"went on at step {done.resumed_at:,} of {done.steps:,}.", err=True)
    echo(f"{done.steps:,} steps: loss {done.first_loss:.4f} -> {done.last_loss:.4f}", err=True)
    echo(str(done.folder))
