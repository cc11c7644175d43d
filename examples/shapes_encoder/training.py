"""Train the encoder that comes with the package: `python -m examples.shapes_encoder`.

A CLIP of about a million parameters, trained on nine tenths of `shapes/train` alone; the last tenth judges
the recipe. A training that was stopped goes on where it was when the same command is given again.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from examples.shapes_encoder.recipe import (
    RECIPE,
    Order,
    versions,
    weights_of,
    write_recipe,
)
from submissions.encoders.extras import needs_torch
from submissions.errors import CheckpointError

STEPS = 1000
WALKS = 32
"""Walks a step; a walk is four pictures."""
LEARNING_RATE = 1.5e-3
WEIGHT_DECAY = 0.05


def train_shapes(folder: str | Path, order: Order) -> Path:
    """Train the shapes encoder, score it, and write it with its recipe.

    The processor's number of threads and torch's mode (deterministic operations only) are set for the whole
    process.

    Args:
        folder: where it goes, a folder in Hugging Face format; with an unfinished training of the same order
            in it, that one goes on.
        order: steps, seed and threads.

    Returns:
        The folder.

    Raises:
        CheckpointError: the folder holds a trained encoder, or a training of another order.
        CallError: the number of steps is below 1.
        MissingExtraError: torch is not installed.
    """
    needs_torch("the training of the shapes encoder")
    from examples.shapes_encoder import heldout, pictures
    from examples.shapes_encoder.learning import TrainingSettings, learn, prepare_torch
    from examples.shapes_encoder.measured import measured
    from examples.shapes_encoder.model import save
    from submissions.encoders.loading import load_encoder
    from submissions.training.loop import Plan, forget

    root = Path(folder).expanduser()
    if (root / RECIPE).exists():
        raise CheckpointError(
            f"{root}: a trained encoder is in it already. "
            "Fix: name another folder with --out, or remove this one."
        )
    plan = Plan(order.steps, WALKS, LEARNING_RATE, WEIGHT_DECAY, order.seed)
    plan.check()
    settings = TrainingSettings()
    started = time.process_time(), time.monotonic()
    parts = pictures.parts()
    drawn, digest = pictures.drawn(parts.learned)
    prepare_torch(order.seed, order.threads)
    depends = {"pixel_sha256": digest, "threads": order.threads}
    model, trained = learn(parts.learned, drawn, plan, settings, folder=root, depends=depends)
    cost = time.process_time() - started[0], time.monotonic() - started[1]
    save(model, root)
    held_out = heldout.results(model, parts.held_out, parts.queries)
    recipe: dict[str, Any] = {
        "name": "shapes encoder",
        "licence": "CC0-1.0",
        "command": order.command,
        **asdict(order),
        "plan": asdict(plan),
        "settings": settings.to_dict(),
        "versions": versions(),
        "data": {
            "benchmark": "shapes/train",
            "pictures": len(parts.learned),
            "pixel_sha256": digest,
            "held_out": len(parts.held_out),
        },
        "cost": {
            "cpu_seconds": round(cost[0]),
            "wall_seconds": round(cost[1]),
            "from_step": trained.resumed_at,
        },
        "loss": {"first": round(trained.first_loss, 4), "last": round(trained.last_loss, 4)},
        "weights": {**weights_of(root), "parameters": sum(each.numel() for each in model.parameters())},
        "held_out": {name: round(value, 4) for name, value in held_out.items()},
        "results": measured(load_encoder(root.absolute(), device="cpu", threads=order.threads)),
    }
    write_recipe(root, recipe)
    forget(root)
    return root
