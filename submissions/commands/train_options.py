"""Options that several trainings have, in the same words, and what a training prints at its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cir_datasets.commands.options import benchmark_values
from cir_datasets.common.terminal import echo

if TYPE_CHECKING:
    from submissions.training.loop import Trained

EncoderOption = Annotated[
    str,
    typer.Option(
        "--encoder",
        help="Encoder: what the head stands on; shapes (shipped), a folder in Hugging Face format, "
        "or a name on the Hub.",
    ),
]
OutOption = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        help="Where to write: the folder of the checkpoint; an unfinished training goes on there.",
    ),
]
BenchmarkOption = Annotated[
    str,
    typer.Option(
        "--benchmark",
        "-b",
        autocompletion=benchmark_values,
        help="Id of the benchmark, whose queries are trained on, such as cirr/train.",
    ),
]
CaptionRuleOption = Annotated[
    str | None,
    typer.Option("--caption-rule", help="How several captions of a query become text; such as trim_and."),
]
StepsOption = Annotated[int | None, typer.Option("--steps", min=1, help="Steps: of the optimiser.")]
BatchOption = Annotated[int | None, typer.Option("--batch-size", min=2, help="Batch: rows of a step.")]
RateOption = Annotated[
    float | None, typer.Option("--learning-rate", help="Learning rate of AdamW: the highest.")
]
DecayOption = Annotated[float | None, typer.Option("--weight-decay", help="Weight decay of AdamW.")]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, help="Seed, a whole number from 0, of weights, batches and dropout.")
]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, help="Processor threads; default: PyTorch's choice.")
]


def report_done(done: Trained) -> None:
    """Print the folder; the course of the training goes to stderr."""
    if done.resumed_at == done.steps:
        echo(f"{done.folder}: this training is done already.", err=True)
    elif done.resumed_at:
        echo(f"went on at step {done.resumed_at:,} of {done.steps:,}.", err=True)
    echo(f"{done.steps:,} steps: loss {done.first_loss:.4f} -> {done.last_loss:.4f}", err=True)
    echo(str(done.folder))
