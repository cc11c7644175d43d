"""Learning curves of CIRPLANT on a held-out part of `shapes/train`, for docs/training.md.

    python perf/cirplant_curves.py --out curves                       # all settings, some minutes each
    python perf/cirplant_curves.py --out curves --settings wide       # one
    python perf/cirplant_curves.py --out curves --epochs 4            # 1,000 steps in place of 3,000
    python perf/cirplant_curves.py --out curves --write docs          # table and picture go to docs

15 % of the references are held out with all their queries, and ranked after every 250 steps among the whole
gallery of `shapes/train` (22,392 images). `shapes/val` is not looked at. Each setting is trained by
`train_composition` into a folder of its own: one that is done is not trained again, and one that was stopped
goes on. Table (`cirplant_curves.tsv`) and picture (`images/cirplant_curves.png`) are written at the end.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cir_datasets.common.terminal import echo
from submissions.training.composition_training import train_composition
from submissions.training.training_options import CirplantTraining

SETTINGS: dict[str, dict[str, Any]] = {
    "code6": {"triplets": 6},
    "together1": {},
    "together4": {"together": 4},
    "wide": {"together": 4, "width": 128, "learning_rate": 0.001},
}
"""By name, what differs from 64 dimensions, all negatives of batches of 128, each reference alone."""

EPOCHS, EPOCH_STEPS = 12, 250
"""3,000 steps; the learning rate falls to 0 with the last."""

RECALLS = ("recall@1", "recall@10", "recall_subset@1")


def trained(name: str, folder: Path, epochs: int) -> None:
    """Train a setting, where that is not done yet; a line an epoch says how far it is."""
    chosen: dict[str, Any] = {
        "triplets": 0,
        "together": 1,
        "width": 64,
        "learning_rate": 0.002,
    }
    chosen |= SETTINGS[name]
    training = CirplantTraining(
        encoder="shapes",
        threads=1,
        benchmark="shapes/train",
        out=folder,
        triplets=chosen["triplets"],
        together=chosen["together"],
        decay="step",
        hidden_size=chosen["width"],
        layers=2,
        heads=4,
        feed_forward=2 * chosen["width"],
        epochs=epochs,
        epoch_steps=EPOCH_STEPS,
        batch_size=128,
        learning_rate=chosen["learning_rate"],
        device="cpu",
        hold_out=0.15,
    )
    train_composition(training, say=lambda line: echo(f"{name}: {line}", err=True))


def history(folder: Path) -> list[dict[str, float]]:
    """What a training measured after each epoch."""
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
    """Train what is not trained yet, and write table and picture."""
    parser = argparse.ArgumentParser(prog="python perf/cirplant_curves.py", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the trainings")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument(
        "--epochs", type=int, default=EPOCHS, help=f"epochs of {EPOCH_STEPS} steps; default: {EPOCHS}"
    )
    parser.add_argument("--write", type=Path, help="folder for table and picture; default: --out")
    given = parser.parse_args(arguments)
    curves = {}
    for number, name in enumerate(given.settings, 1):
        folder = given.out / (name if given.epochs == EPOCHS else f"{name}-{given.epochs}")
        echo(f"{name}: setting {number} of {len(given.settings)}, in {folder}", err=True)
        trained(name, folder, given.epochs)
        curves[name] = history(folder)
    where = given.write or given.out
    (where / "images").mkdir(parents=True, exist_ok=True)
    (where / "cirplant_curves.tsv").write_text(table(curves), encoding="utf-8")
    draw(curves, where / "images/cirplant_curves.png")
    echo(str(where / "cirplant_curves.tsv"))


if __name__ == "__main__":
    main()
