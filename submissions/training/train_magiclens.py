"""Train the head of the method `magiclens`: `python -m submissions.training.train_magiclens --help`."""

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
    steps: words.StepsOption = None,
    batch_size: words.BatchOption = None,
    learning_rate: words.RateOption = None,
    weight_decay: words.DecayOption = None,
    seed: words.SeedOption = 0,
    device: words.DeviceOption = "auto",
    threads: words.ThreadsOption = None,
) -> None:
    """Train MagicLens' fusion of image and caption, on top of a CLIP that stays as it is.

    The folder is printed. Stopped and called again, the training goes on from its last half minute.

    \b
    Example:
        python -m submissions.training.train_magiclens --benchmark shapes/train --encoder shapes --out FOLDER
    """
    from submissions.encoders.loading import load_encoder
    from submissions.training.magiclens_training import PLAN, train_magiclens

    plan = words.changed_plan(
        PLAN,
        steps=steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        seed=seed,
    )
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
    words.tell(done)


if __name__ == "__main__":
    words.run(main)
