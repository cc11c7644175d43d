"""What each training takes, once: its command, its file of options and its Python call.

A training's options are its `Plan`. The functions `train_...` beside this module take them, as in
`train_concat(ConcatTraining(benchmark="shapes/train", out=Path("head"), steps=600))`.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cir_datasets.common.options import Options, by_call_alone, check_values, option
from cir_datasets.common.yaml import package_yaml
from cir_datasets.registry import members_of
from cir_metrics.errors import CallError
from submissions.running.method_options import DeviceOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from submissions.encoders.protocol import Encoder

PRECISIONS = ("float16", "bfloat16")
"""Types of mixed precision; gradients of the first are scaled, so that small ones are not lost."""

_WARM_UP = 0.05
"""Share of the steps in which the learning rate rises."""
_SIZES = ("hidden_size", "layers", "heads", "feed_forward", "dropout")
_RATE = "Learning rate of AdamW: that of the first step."


class Plan(Options, kw_only=False):
    """How a head is trained; the rate rises over the first 5 % of the steps and falls as a cosine to 0.

    Args:
        steps: optimiser steps, 1 or more.
        batch_size: rows a step, 2 or more: every row's rivals are the others.
        learning_rate: of AdamW, at its highest.
        weight_decay: of AdamW.
        seed: of the weights, the batches and dropout.
        clip: length that the gradient is cut to; None does not cut it.
        precision: type of the forward pass, `float16` or `bfloat16`; weights stay float32. None is float32.

    Raises:
        CallError: a number is out of range.
    """

    steps: int = option(1000, "Steps: of the optimiser.", min=1)
    batch_size: int = option(256, "Batch: rows of a step.", min=2, in_file=True)
    learning_rate: float = option(1e-3, "Learning rate of AdamW: the highest.")
    weight_decay: float = option(0.1, "Weight decay of AdamW.", min=0, in_file=True)
    seed: int = option(0, "Seed, a whole number from 0, of weights, batches and dropout.", min=0)
    clip: float | None = by_call_alone(None)
    precision: str | None = by_call_alone(None)

    def __post_init__(self) -> None:
        """Refuse numbers that train nothing."""
        self.check()

    def check(self) -> None:
        """Refuse numbers that train nothing, as every new plan does."""
        check_values(self, CallError)
        for name in ("learning_rate", "weight_decay", "clip"):
            value, may_be_0 = getattr(self, name), name == "weight_decay"
            if value is not None and not (math.isfinite(value) and (value > 0 or may_be_0)):
                low = "0 or more" if may_be_0 else "above 0"
                raise CallError(f"{name}={value}; it is {low}, and finite. Fix: choose another one.")
        if self.precision not in (None, *PRECISIONS):
            known = ", ".join(PRECISIONS)
            raise CallError(f"precision={self.precision!r} is not known. Fix: use {known}, or leave it out.")

    @property
    def numbers(self) -> dict[str, Any]:
        """What of a training's options the loop goes by: the fields above."""
        return {field.name: getattr(self, field.name) for field in fields(Plan)}

    def rate(self, step: int) -> float:
        """The learning rate of a step.

        Example:
            >>> [round(Plan(100, 8, 1.0).rate(step), 2) for step in (0, 4, 50, 99)]
            [0.2, 1.0, 0.5, 0.0]
        """
        rise = min(1.0, (step + 1) / max(1.0, self.steps * _WARM_UP))
        return self.learning_rate * rise * 0.5 * (1.0 + math.cos(math.pi * step / self.steps))

    def steps_of_epoch(self, *counts: int) -> int:
        """Steps that see each row of each member once, but for those that each leaves over.

        Example:
            >>> Plan(100, 8, 1.0).steps_of_epoch(20), Plan(100, 8, 1.0).steps_of_epoch(20, 9)
            (2, 3)
        """
        return sum(count // min(self.batch_size, count) for count in counts)

    def rows(self, step: int, *counts: int) -> NDArray[np.int64]:
        """Which rows a step sees: all are of one member, since those of a suite differ greatly.

        Every epoch has its own order of rows and of members, and drops what is left over.

        Args:
            step: from 0.
            counts: rows of each member of a suite, which stand behind each other; of a benchmark, its rows.

        Example:
            >>> plan = Plan(100, 2, 1.0)
            >>> [sorted(plan.rows(step, 2, 4).tolist()) for step in range(3)]
            [[2, 4], [3, 5], [0, 1]]
        """
        import numpy as np

        epoch, place = divmod(step, self.steps_of_epoch(*counts))
        member = 0
        if len(counts) > 1:
            turns = np.repeat(np.arange(len(counts)), [self.steps_of_epoch(count) for count in counts])
            turns = np.random.default_rng([self.seed, epoch, len(counts)]).permutation(turns)
            member = int(turns[place])
            place = int((turns[:place] == member).sum())
        count = counts[member]
        size = min(self.batch_size, count)
        order = np.random.default_rng([self.seed, epoch]).permutation(count)
        return sum(counts[:member]) + order[place * size : (place + 1) * size].astype(np.int64)


class Trains(DeviceOptions):
    """What every training takes."""

    out: Path = option(
        ..., "Where to write: the folder of the checkpoint; an unfinished training goes on there.", "-o"
    )
    encoder: str | Path | Encoder = option(
        "shapes",
        "Encoder: what the head stands on; shapes (shipped), a folder in Hugging Face format, "
        "or a name on the Hub.",
        kind=str,
    )
    revision: str | None = option(
        None, "Revision on the Hub: the encoder's commit, branch or tag.", in_file=True
    )
    threads: int | None = option(None, "Processor threads; default: PyTorch's choice.", min=1, in_file=True)
    from_checkpoint: str | Path | None = option(
        None,
        "Trained checkpoint, of the same method and encoder, that the training goes on from; default: none.",
        "--from",
        kind=str,
    )

    @property
    def folder(self) -> Path:
        """Where the checkpoint goes."""
        return Path(self.out).expanduser()

    def loaded(self) -> Encoder:
        """The encoder; loading it takes long, so that a folder that is none is refused before.

        Raises:
            CallError: a file lies where the checkpoint is to go.
        """
        if self.folder.is_file():
            raise CallError(f"out={self.out}: it is a file. Fix: name a folder (--out FOLDER).")
        from submissions.encoders.loading import load_encoder

        if isinstance(self.encoder, str | Path):
            return self.call(load_encoder, name=self.encoder)
        return self.encoder


class TrainsOnQueries(Trains):
    """What a training on the queries of a benchmark takes."""

    benchmark: str = option(
        ...,
        "Id of the benchmark, whose queries are trained on, such as cirr/train; of a suite, such as "
        "fashioniq/train, each batch is of one member.",
        "-b",
    )
    images: str | Path | None = option(
        None, "Folder of the images; default: below CIR_IMAGES. Shapes are drawn."
    )
    caption_rule: str | None = option(
        None, "How several captions of a query become text; such as trim_and.", in_file=True
    )


class ConcatTraining(Plan, TrainsOnQueries):
    """A training of the concatenation baseline; the second loss overfits on CIRR, by its appendix."""

    loss: str = option(
        "soft_triplet",
        "soft_triplet (the paper's choice on CIRR) or batch_softmax.",
        choices=("soft_triplet", "batch_softmax"),
        in_file=True,
    )
    hidden_size: int | None = option(
        None, "Hidden size: units of the layer between; default: twice the dimensions.", min=1, in_file=True
    )


class Pic2WordTraining(Plan, Trains):
    """A training of Pic2Word; its rate suits the shipped encoder, for a ViT-L/14 the paper takes 1e-4."""

    images: str | Path | None = option(
        None,
        "Folder of the images, which are trained on with those of its sub-folders; with "
        "--benchmark the benchmark's, default: below CIR_IMAGES.",
    )
    benchmark: str | None = option(
        None, "Id of the benchmark, or of a suite, whose gallery is trained on.", "-b"
    )
    hidden_size: int = option(512, "Hidden size: units of the two layers between.", min=1, in_file=True)
    dropout: float = option(
        0.1, "Dropout: share of units left out in training, from 0 to below 1.", in_file=True
    )

    def __post_init__(self) -> None:
        """Refuse numbers that train nothing."""
        super().__post_init__()
        _check_share("dropout", self.dropout)


class MagicLensTraining(Plan, TrainsOnQueries):
    """A training of MagicLens' fusion."""

    learning_rate: float = option(3e-4, "Learning rate of AdamW: the highest.")
    layers: int = option(4, "Layers, of self-attention.", min=1, in_file=True)
    heads: int = option(8, "Attention heads; they divide the encoder's dimensions.", min=1, in_file=True)
    feed_forward: int | None = option(
        None, "Units of feed-forward blocks; default: four times the dimensions.", min=1, in_file=True
    )


class CompositionTraining(Plan, TrainsOnQueries):
    """A training of CIRPLANT or TIRG: batches drawn with replacement, and a linear decay.

    `recipe` names what stands in `recipes.yaml`; an option that is None is the recipe's.

    Args:
        squared: the distance is squared.
        composed_negatives: others' composed queries are negatives, too.
        together: triplets of one reference that a batch has at a time. More than 1, which neither code nor
            paper has, gives queries negatives that look like their own target.
        normalised_input: the projected reference has length 1 before the transformer reads it.
        scaled: features are multiplied with a learned scale.
        halved_gradient: as the code's hand-written gradient is; AdamW sees it in the clipping only.
    """

    composition: ClassVar[str]
    usual_sizes: ClassVar[dict[str, Any]]
    """The sizes of a network that begins at random, unless said otherwise."""

    recipe: str = option(
        "code",
        "What CIRPLANT's released code does (code) or its paper says (paper): distance, negatives, "
        "triplets, decay of the learning rate. The options below change one of these.",
        choices=("code", "paper"),
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
        choices=("epoch", "step"),
        in_file=True,
    )
    squared: bool | None = by_call_alone(None)
    composed_negatives: bool | None = by_call_alone(None)
    normalised_input: bool | None = by_call_alone(None)
    scaled: bool | None = by_call_alone(None)
    halved_gradient: bool | None = by_call_alone(None)
    hidden_size: int | None = option(
        None,
        "Hidden size: dimensions of words and features; default: cirplant 768, tirg 512.",
        min=1,
        in_file=True,
    )
    steps: int = by_call_alone(1)
    epochs: int = option(300, "Epochs.", min=1)
    epoch_steps: int | None = option(
        None,
        "Steps an epoch; default: images of the gallery by batch size, 529 on cirr/train.",
        min=1,
        in_file=True,
    )
    batch_size: int = option(32, "Batch: triplets of a step, drawn with replacement.", min=2, in_file=True)
    learning_rate: float = option(1e-5, _RATE)
    weight_decay: float = option(
        0.05, "Weight decay of AdamW, but for biases and norms.", min=0, in_file=True
    )
    clip: float | None = option(1.0, "Length that a gradient is cut to, above 0.", in_file=True)
    precision: str | None = option(
        None, "Mixed precision: float16 or bfloat16; default: float32.", in_file=True
    )
    validation: str | None = option(
        None,
        "Id of a benchmark, or of a suite (its mean), that is measured on after each epoch; "
        "the best epoch's weights are kept.",
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

    def __post_init__(self) -> None:
        """Refuse what trains nothing, and what contradicts itself."""
        super().__post_init__()
        _check_share("hold_out", self.hold_out)
        if self.together > max(1, self.batch_size // 2):
            raise CallError(
                f"together={self.together} and batch_size={self.batch_size}; a batch has two references or "
                "more, so that there are negatives. Fix: give a smaller together or a larger batch_size."
            )
        if self.hold_out and self.validation is not None:
            raise CallError("hold_out and validation are both given. Fix: give one of them.")
        if self.patience and not self.hold_out and self.validation is None:
            raise CallError(
                f"patience={self.patience} and nothing to measure on. Fix: give validation (--validation "
                "BENCHMARK) or hold_out (0.1 is a usual one)."
            )
        both = {*members_of(self.benchmark)} & {*members_of(self.validation or "")}
        if both:
            what = "" if self.validation == self.benchmark else f" ({min(both)})"
            raise CallError(
                f"validation={self.validation} is trained on as well{what}, so that its recall says nothing. "
                "Fix: give another benchmark, or hold_out (0.1 is a usual one)."
            )
        sizes = self.sizes
        # A checkpoint has its heads, which the usual ones need not be.
        if self.from_checkpoint is None and sizes["hidden_size"] % sizes.get("heads", 1):
            raise CallError(
                f"hidden_size={sizes['hidden_size']}, heads={sizes['heads']}; heads divide hidden_size. "
                "Fix: 768 and 12 are BERT's."
            )

    @property
    def changed_sizes(self) -> dict[str, Any]:
        """The sizes that the call gives."""
        sizes = {name: getattr(self, name, None) for name in _SIZES}
        return {name: value for name, value in sizes.items() if value is not None}

    @property
    def sizes(self) -> dict[str, Any]:
        """The sizes of a network that begins at random."""
        return {**self.usual_sizes, **self.changed_sizes}

    def resolved(self, gallery_size: int) -> Self:
        """The same with what the recipe says, and with the steps that a gallery of that size gives."""
        missing = {name: value for name, value in self._recipe.items() if getattr(self, name) is None}
        epoch_steps = self.epoch_steps or max(1, gallery_size // self.batch_size)
        return replace(self, steps=self.epochs * epoch_steps, epoch_steps=epoch_steps, **missing)

    @property
    def numbers(self) -> dict[str, Any]:
        """What the loop goes by."""
        return {**super().numbers, "epoch_steps": self.epoch_steps, "decay": self.decay}

    @property
    def differences(self) -> dict[str, Any]:
        """What code and paper do differently, as it is done."""
        return {name: getattr(self, name) for name in (*self._recipe, "together")}

    @property
    def _recipe(self) -> dict[str, Any]:
        recipe: dict[str, Any] = package_yaml("submissions", "training/recipes.yaml")[self.recipe]
        return recipe

    def rate(self, step: int) -> float:
        """The learning rate of a step, of `resolved` options.

        Example:
            >>> training = TirgTraining(benchmark="shapes/train", out=Path("head"), learning_rate=1.0)
            >>> resolved = replace(training, epochs=10, epoch_steps=10).resolved(gallery_size=320)
            >>> [round(resolved.rate(step), 2) for step in (0, 50, 99)]
            [1.0, 0.95, 0.91]
        """
        done = step // (self.epoch_steps or 1) if self.decay == "epoch" else step
        return self.learning_rate * (1.0 - done / self.steps)

    def steps_of_epoch(self, *counts: int) -> int:
        """Steps an epoch, whatever the number of rows."""
        return self.epoch_steps or 1

    def rows(self, step: int, *counts: int) -> NDArray[np.int64]:
        """Which rows a step sees: of one member, drawn with replacement; a member by its share of the rows.

        Args:
            step: from 0.
            counts: as of `Plan.rows`.
        """
        import numpy as np

        draws = np.random.default_rng([self.seed, step])
        member = 0
        if len(counts) > 1:
            member = int(np.searchsorted(np.cumsum(counts), draws.integers(sum(counts)), side="right"))
        return sum(counts[:member]) + draws.integers(counts[member], size=self.batch_size)

    def log(self) -> str:
        """Which learning rate the training has, for a person."""
        last = self.rate(self.steps - 1)
        how = (
            "lowered once an epoch by a step's share, as the released code does"
            if self.decay == "epoch"
            else "lowered after every step, as the paper says"
        )
        return f"learning rate: linear from {self.learning_rate:g} to {last:g}, {how} (decay {self.decay})"


class CirplantTraining(CompositionTraining):
    """A training of CIRPLANT; its sizes are those of BERT's base model unless said otherwise."""

    composition: ClassVar[str] = "cirplant"
    usual_sizes: ClassVar[dict[str, Any]] = {
        "hidden_size": 768,
        "layers": 12,
        "heads": 12,
        "feed_forward": None,
        "dropout": 0.1,
    }

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

    def __post_init__(self) -> None:
        """Refuse sizes beside a BERT, which has its own."""
        super().__post_init__()
        if self.init is not None and self.from_checkpoint is not None:
            raise CallError(
                "--init and --from both give the weights. Fix: give --from for a trained checkpoint, or "
                "--init for a BERT or OSCAR."
            )
        if self.init is not None and self.changed_sizes:
            raise CallError(
                f"--init gives the sizes, and {', '.join(self.changed_sizes)} too. Fix: leave one of the two "
                "out."
            )
        _check_share("dropout", self.sizes["dropout"])


class TirgTraining(CompositionTraining):
    """A training of TIRG; its size is that of its paper unless said otherwise."""

    composition: ClassVar[str] = "tirg"
    usual_sizes: ClassVar[dict[str, Any]] = {"hidden_size": 512}

    learning_rate: float = option(1e-4, _RATE)


def _check_share(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise CallError(f"{name}={value}; it is a share from 0 to below 1. Fix: 0.1 is a usual one.")
