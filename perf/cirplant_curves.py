"""Learning curves of CIRPLANT on a held-out part of `shapes/train`, for docs/cirplant.md.

    python perf/cirplant_curves.py --out curves                       # all settings, some minutes each
    python perf/cirplant_curves.py --out curves --settings wide       # one
    python perf/cirplant_curves.py --out curves --write docs          # the table and the picture in docs

15 % of the references are held out with all their queries, and ranked among the whole gallery of
`shapes/train` (22,392 images). `shapes/val` is not looked at. A training that is done is not repeated.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cir_metrics.errors import CallError
from cir_metrics.terminal import echo
from submissions.training.composition_training import train_composition
from submissions.training.triplet_plan import RECIPES, NetworkShape

SETTINGS: dict[str, dict[str, Any]] = {
    "code6": {"triplets": 6},
    "together1": {},
    "together4": {"together": 4},
    "wide": {"together": 4, "width": 128, "learning_rate": 0.001},
}
"""By name, what differs from 64 dimensions, all negatives of batches of 128 and 12 times 250 steps."""

RECALLS = ("recall@1", "recall@10", "recall_subset@1")


def trained(name: str, out: Path) -> None:
    """Train a setting, where that is not done yet."""
    from submissions.encoders.loading import load_encoder

    chosen: dict[str, Any] = {
        "triplets": 0,
        "together": 1,
        "width": 64,
        "learning_rate": 0.002,
        "batch_size": 128,
        "epochs": 12,
    }
    chosen |= SETTINGS[name]
    recipe = {"triplets": chosen["triplets"], "together": chosen["together"], "decay": "step"}
    train_composition(
        load_encoder("shapes", device="cpu", threads=1),
        "shapes/train",
        out / name,
        recipe=dataclasses.replace(RECIPES["code"], **recipe),
        shape=NetworkShape(chosen["width"], layers=2, heads=4, feed_forward=2 * chosen["width"]),
        epochs=chosen["epochs"],
        epoch_steps=250,
        batch_size=chosen["batch_size"],
        learning_rate=chosen["learning_rate"],
        device="cpu",
        hold_out=0.15,
        say=lambda line: echo(f"{name}: {line}", err=True),
    )


def history(folder: Path) -> list[dict[str, float]]:
    """What a training measured after each epoch."""
    if not (folder / "config.json").is_file():
        raise CallError(
            f"{folder}: this setting is not trained. Fix: leave --write out, or name it in --settings."
        )
    found: list[dict[str, float]] = json.loads((folder / "config.json").read_text(encoding="utf-8"))[
        "training"
    ]["history"]
    return found


def table(curves: dict[str, list[dict[str, float]]]) -> str:
    """The curves as separated values, per cent."""
    lines = ["\t".join(("setting", "step", *RECALLS))]
    for name, points in curves.items():
        lines += [
            "\t".join((name, str(int(point["step"])), *(f"{100 * point[each]:.2f}" for each in RECALLS)))
            for point in points
        ]
    return "\n".join(lines) + "\n"


def draw(curves: dict[str, list[dict[str, float]]], path: Path) -> None:
    """The curves as a picture: a field for each recall, a line for each setting."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.4), layout="constrained")
    for axes, recall in zip(figure.subplots(1, len(RECALLS)), RECALLS, strict=True):
        for name, points in curves.items():
            steps = [point["step"] for point in points]
            axes.plot(steps, [100 * point[recall] for point in points], label=name)
        axes.set_title(f"{recall}, per cent, by step")
        axes.set_ylim(bottom=0)
    axes.legend()
    figure.savefig(path, dpi=80)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and where it is asked for write table and picture."""
    parser = argparse.ArgumentParser(prog="python perf/cirplant_curves.py", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the trainings")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument(
        "--write", type=Path, help="folder to write cirplant_curves.tsv and images/cirplant_curves.png to"
    )
    given = parser.parse_args(arguments)
    for name in given.settings:
        trained(name, given.out)
    if given.write is not None:
        curves = {name: history(given.out / name) for name in given.settings}
        (given.write / "cirplant_curves.tsv").write_text(table(curves), encoding="utf-8")
        draw(curves, given.write / "images/cirplant_curves.png")


if __name__ == "__main__":
    main()
