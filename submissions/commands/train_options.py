"""Options that several trainings have, in the same words, and what a training prints at its end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import Images, LoadsBenchmarks, benchmark_values, option
from cir_datasets.common.terminal import echo
from submissions.running.method_options import DeviceOptions

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder
    from submissions.training.loop import Plan, Trained


class Trains(DeviceOptions, LoadsBenchmarks):
    """What every training takes."""

    out: Path = option(
        ..., "Where to write: the folder of the checkpoint; an unfinished training goes on there.", "-o"
    )
    encoder: str = option(
        "shapes",
        "Encoder: what the head stands on; shapes (shipped), a folder in Hugging Face format, "
        "or a name on the Hub.",
    )
    revision: str | None = option(
        None, "Revision on the Hub: the encoder's commit, branch or tag.", in_file=True
    )
    seed: int = option(0, "Seed, a whole number from 0, of weights, batches and dropout.", min=0)
    threads: int | None = option(None, "Processor threads; default: PyTorch's choice.", min=1, in_file=True)

    def loaded(self) -> Encoder:
        """The encoder."""
        from submissions.encoders.loading import load_encoder

        return self.call(load_encoder, name=self.encoder)


class TrainsOnQueries(Trains):
    """What a training on the queries of a benchmark takes."""

    benchmark: str = option(
        ...,
        "Id of the benchmark, whose queries are trained on, such as cirr/train.",
        "-b",
        values=benchmark_values,
    )
    images: Images = None
    caption_rule: str | None = option(
        None, "How several captions of a query become text; such as trim_and.", in_file=True
    )


class TrainsBySteps(Trains):
    """What a training of so many steps takes."""

    steps: int | None = option(None, "Steps: of the optimiser.", min=1)
    batch_size: int | None = option(None, "Batch: rows of a step.", min=2, in_file=True)
    learning_rate: float | None = option(None, "Learning rate of AdamW: the highest.")
    weight_decay: float | None = option(None, "Weight decay of AdamW.", in_file=True)

    def changed(self, plan: Plan) -> Plan:
        """A plan with the numbers that the call gives."""
        names = ("steps", "batch_size", "learning_rate", "weight_decay", "seed")
        numbers = {name: getattr(self, name) for name in names}
        return replace(plan, **{name: value for name, value in numbers.items() if value is not None})


def report_done(done: Trained) -> None:
    """Print the folder; the course of the training goes to stderr."""
    if done.resumed_at == done.steps:
        echo(f"{done.folder}: this training is done already.", err=True)
    elif done.resumed_at:
        echo(f"went on at step {done.resumed_at:,} of {done.steps:,}.", err=True)
    echo(f"{done.steps:,} steps: loss {done.first_loss:.4f} -> {done.last_loss:.4f}", err=True)
    echo(str(done.folder))
