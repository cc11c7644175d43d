"""The recipe that lies beside the weights: what made them, what they are, and what they score."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from cir_datasets.common.atomic import write_whole
from cir_datasets.common.yaml import parse_yaml
from submissions.errors import CheckpointError

PROGRAM = "python -m examples.shapes_encoder"
RECIPE = "recipe.yaml"
WEIGHTS = "model.safetensors"

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


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide the weights."""
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}}


def weights_of(folder: Path) -> dict[str, Any]:
    """Size and hash of the weights in a folder."""
    data = (folder / WEIGHTS).read_bytes()
    return {"file": WEIGHTS, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def write_recipe(folder: Path, recipe: Mapping[str, Any]) -> Path:
    """Write a recipe; it appears whole or not at all, and says that the folder is done."""
    path = folder / RECIPE
    text = yaml.safe_dump(
        dict(recipe), sort_keys=False, default_flow_style=None, width=110, allow_unicode=True
    )
    write_whole(path, text.encode(), durable=True)
    return path


def read_recipe(folder: Path) -> dict[str, Any]:
    """Read a recipe.

    Raises:
        CheckpointError: the folder holds no recipe, or it is not a YAML mapping.
    """
    path = folder / RECIPE
    try:
        found = parse_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise CheckpointError(
            f"{path}: cannot be read: {reason}. Fix: name a folder that `{PROGRAM}` wrote."
        ) from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path}: holds no mapping. Fix: name a folder that `{PROGRAM}` wrote.")
    return found
