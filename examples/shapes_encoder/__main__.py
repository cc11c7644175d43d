"""Train the encoder that comes with the package, in a clone.

A CLIP of about a million parameters, trained on nine tenths of `shapes/train` alone; the last tenth judges
the recipe. A training that was stopped goes on where it was when the same command is given again.

Example:
    python -m examples.shapes_encoder --out FOLDER
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from cir_metrics import CirError
from examples.shapes_encoder.learning import TrainingSettings, learn, prepare_torch
from examples.shapes_encoder.model import save
from examples.shapes_encoder.pictures import drawn, parts
from examples.shapes_encoder.results import held_out_results, measured
from submissions.encoders import load_encoder
from submissions.training import Plan, forget

PROGRAM = "python -m examples.shapes_encoder"
RECIPE = "recipe.yaml"
WEIGHTS = "model.safetensors"
STEPS = 1000
WALKS = 32
"""Walks a step; a walk is four pictures."""
LEARNING_RATE = 1.5e-3
WEIGHT_DECAY = 0.05

_PACKAGES = ("numpy", "torch", "transformers", "tokenizers", "safetensors")


@dataclass(frozen=True)
class Order:
    """What the person who trains decides; the rest of the recipe is in the code.

    Args:
        steps: of the optimizer.
        seed: of the weights, the batches and the captions.
        threads: of the processor; another number adds in another order, and gives other last digits.
    """

    steps: int
    seed: int
    threads: int

    @property
    def command(self) -> str:
        """The command line.

        Example:
            >>> Order(10, 0, 2).command
            'python -m examples.shapes_encoder --steps 10 --seed 0 --threads 2'
        """
        return f"{PROGRAM} --steps {self.steps} --seed {self.seed} --threads {self.threads}"

    @property
    def plan(self) -> Plan:
        """How the loop trains."""
        return Plan(self.steps, WALKS, LEARNING_RATE, WEIGHT_DECAY, self.seed)


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
        FileExistsError: the folder holds a trained encoder.
        CirError: it holds a training of another order, or the number of steps is below 1.
    """
    root = Path(folder).expanduser()
    if (root / RECIPE).exists():
        raise FileExistsError(
            f"{root}: a trained encoder is in it already. "
            "Fix: name another folder with --out, or remove this one."
        )
    order.plan.check()
    settings = TrainingSettings()
    started = time.process_time(), time.monotonic()
    train = parts()
    pictures, digest = drawn(train.learned)
    prepare_torch(order.seed, order.threads)
    depends = {"pixel_sha256": digest, "threads": order.threads}
    model, trained = learn(train.learned, pictures, order.plan, settings, folder=root, depends=depends)
    cost = time.process_time() - started[0], time.monotonic() - started[1]
    save(model, root)
    held_out = held_out_results(model, train.held_out, train.queries)
    recipe: dict[str, Any] = {
        "name": "shapes encoder",
        "licence": "CC0-1.0",
        "command": order.command,
        **asdict(order),
        "plan": asdict(order.plan),
        "settings": settings.to_dict(),
        "versions": {"python": platform.python_version(), **{n: metadata.version(n) for n in _PACKAGES}},
        "data": {
            "benchmark": "shapes/train",
            "pictures": len(train.learned),
            "pixel_sha256": digest,
            "held_out": len(train.held_out),
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


def weights_of(folder: Path) -> dict[str, Any]:
    """Size and hash of the weights in a folder."""
    data = (folder / WEIGHTS).read_bytes()
    return {"file": WEIGHTS, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def write_recipe(folder: Path, recipe: Mapping[str, Any]) -> None:
    """Write what made the weights, what they are and what they score; it says that the folder is done."""
    text = yaml.safe_dump(
        dict(recipe), sort_keys=False, default_flow_style=None, width=110, allow_unicode=True
    )
    part = folder / f"{RECIPE}.part"
    part.write_text(text, encoding="utf-8")
    part.replace(folder / RECIPE)


def main() -> None:
    """Train and print the folder; stopped and called again, it goes on from its last epoch or half minute."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("shapes_encoder"), help="the folder to write")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of the optimiser")
    parser.add_argument("--seed", type=int, default=0, help="of weights, batches and captions")
    parser.add_argument("--threads", type=int, default=1, help="processor threads; part of the recipe")
    call = parser.parse_args()
    sys.stderr.write(f"{call.out}: drawing shapes/train, then {call.steps:,} steps ...\n")
    try:
        sys.stdout.write(f"{train_shapes(call.out, Order(call.steps, call.seed, call.threads))}\n")
    except (CirError, FileExistsError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
