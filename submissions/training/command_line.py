"""What the commands that train a head share: their options' words, and how they begin and end."""

from __future__ import annotations

import dataclasses
import functools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cir_metrics.errors import CirError
from cir_metrics.terminal import echo

if TYPE_CHECKING:
    from submissions.training.loop import Plan, Trained

_INTERRUPTED = 130
"""What a shell tells of a program that Ctrl-C has ended."""

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


def changed_plan(
    plan: Plan,
    *,
    steps: int | None,
    batch_size: int | None,
    learning_rate: float | None,
    weight_decay: float | None,
    seed: int,
) -> Plan:
    """A plan with the numbers that the call gives."""
    given: dict[str, Any] = {
        "steps": steps,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "seed": seed,
    }
    return dataclasses.replace(plan, **{name: value for name, value in given.items() if value is not None})


def tell(done: Trained) -> None:
    """Print the folder; the course of the training goes to stderr."""
    if done.resumed_at == done.steps:
        echo(f"{done.folder}: this training is done already.", err=True)
    elif done.resumed_at:
        echo(f"went on at step {done.resumed_at:,} of {done.steps:,}.", err=True)
    echo(f"{done.steps:,} steps: loss {done.first_loss:.4f} -> {done.last_loss:.4f}", err=True)
    echo(str(done.folder))


def run(command: Callable[..., None]) -> None:
    """Run one command as a program; an error of ours is a line on stderr and an exit code."""
    warnings.showwarning = lambda message, *_, **__: echo(f"warning: {message}", err=True)

    @functools.wraps(command)
    def told(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt:
            echo("interrupted; the same command goes on from here.", err=True)
            raise typer.Exit(_INTERRUPTED) from None

    try:
        typer.run(told)
    except CirError as error:
        echo(str(error), err=True)
        sys.exit(error.exit_code)
