"""Train the head of the method `concat`: `python -m submissions.training.train_concat --help`."""

from __future__ import annotations

from typing import Annotated

import typer

from submissions.training import command_line as words


def main(
    benchmark: words.BenchmarkOption,
    out: words.OutOption,
    encoder: words.EncoderOption = "shapes",
    revision: words.RevisionOption = None,
    images: words.ImagesOption = None,
    caption_rule: words.CaptionRuleOption = None,
    loss: Annotated[
        str, typer.Option("--loss", help="soft_triplet (the paper's choice on CIRR) or batch_softmax.")
    ] = "soft_triplet",
    hidden_size: Annotated[
        int | None,
        typer.Option(
            "--hidden-size", min=1, help="Units of the layer between; default: twice the dimensions."
        ),
    ] = None,
    steps: words.StepsOption = None,
    batch_size: words.BatchOption = None,
    learning_rate: words.RateOption = None,
    weight_decay: words.DecayOption = None,
    seed: words.SeedOption = 0,
    device: words.DeviceOption = "auto",
    threads: words.ThreadsOption = None,
) -> None:
    """Train CIRR's concatenation baseline: a perceptron on the vectors of image and caption.

    The folder is printed. Stopped and called again, the training goes on from its last half minute.

    \b
    Example:
        python -m submissions.training.train_concat --benchmark shapes/train --encoder shapes --out FOLDER
    """
    from submissions.encoders.loading import load_encoder
    from submissions.training.concat_training import PLAN, train_concat

    plan = words.changed_plan(
        PLAN,
        steps=steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        seed=seed,
    )
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
    words.tell(done)


if __name__ == "__main__":
    words.run(main)
