"""Pictures and scenes of `shapes/train`, and the part of them that is held out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.shapes import SIDE, Meaning, Scene, pixels, split

HELD_OUT = 70
"""References of `shapes/train`, a tenth of them, whose queries and pictures are kept for judging a recipe."""

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Parts:
    """`shapes/train` in two: what is learned from, and what a recipe is judged by.

    Args:
        learned: scenes to learn from.
        held_out: the other scenes, by image id.
        queries: rows about held-out pictures.
    """

    learned: list[Scene]
    held_out: dict[str, Scene]
    queries: list[dict[str, Any]]


def parts(references: int = HELD_OUT) -> Parts:
    """Hold out the last references of `shapes/train` with all pictures that mean what theirs mean.

    As between train and val, no meaning of one part occurs in the other.

    Args:
        references: how many; 1 or more.
    """
    train = split("train")
    last = set(list(dict.fromkeys(row["reference_image_id"] for row in train.queries))[-references:])
    queries = [row for row in train.queries if row["reference_image_id"] in last]
    scenes = dict(zip(train.image_ids, train.scenes, strict=True))
    meanings: set[Meaning] = set()
    for row in queries:
        images = [row["reference_image_id"], *row["positive_image_ids"], *row["negative_image_ids"]]
        meanings.update(scenes[image].meaning for image in images)
    return Parts(
        learned=[scene for scene in train.scenes if scene.meaning not in meanings],
        held_out={image: scene for image, scene in scenes.items() if scene.meaning in meanings},
        queries=queries,
    )


def drawn(scenes: Sequence[Scene]) -> tuple[Pixels, str]:
    """Pictures of scenes.

    Args:
        scenes: any.

    Returns:
        RGB values, shape (scenes, 3, side, side), and the sha256 of the pictures' bytes, row by row.
    """
    found = np.empty((len(scenes), 3, SIDE, SIDE), dtype=np.uint8)
    digest = hashlib.sha256()
    for row, scene in enumerate(scenes):
        whole = pixels(scene)
        digest.update(whole.tobytes())
        found[row] = whole.transpose(2, 0, 1)
    return found, digest.hexdigest()
