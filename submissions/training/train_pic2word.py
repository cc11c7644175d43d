"""Train the head of the method `pic2word`: `python -m submissions.training.train_pic2word --help`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from submissions.training import command_line as words

if TYPE_CHECKING:
    from submissions.embeddings.pictures import Pictures


def main(
    out: words.OutOption,
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
    encoder: words.EncoderOption = "shapes",
    revision: words.RevisionOption = None,
    hidden_size: Annotated[
        int, typer.Option("--hidden-size", min=1, help="Units of the two layers between.")
    ] = 512,
    dropout: Annotated[
        float, typer.Option("--dropout", help="Share of units left out in training, from 0 to below 1.")
    ] = 0.1,
    steps: words.StepsOption = None,
    batch_size: words.BatchOption = None,
    learning_rate: words.RateOption = None,
    weight_decay: words.DecayOption = None,
    seed: words.SeedOption = 0,
    device: words.DeviceOption = "auto",
    threads: words.ThreadsOption = None,
) -> None:
    """Train Pic2Word's mapping network on pictures without captions.

    The folder is printed. Stopped and called again, the training goes on from its last half minute.

    \b
    Example:
        python -m submissions.training.train_pic2word --benchmark shapes/train --encoder shapes --out FOLDER
    """
    from submissions.encoders.loading import load_encoder
    from submissions.training.pic2word_training import PLAN, train_pic2word

    plan = words.changed_plan(
        PLAN,
        steps=steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        seed=seed,
    )
    pictures = _pictures(benchmark, images)
    loaded = load_encoder(encoder, revision=revision, device=device, threads=threads)
    words.tell(train_pic2word(loaded, pictures, out, plan=plan, hidden_size=hidden_size, dropout=dropout))


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


if __name__ == "__main__":
    words.run(main)
