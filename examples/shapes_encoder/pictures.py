"""Pictures and scenes of `shapes/train`: the part that is held out, and which are a change apart."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.progress import step_progress
from cir_datasets.shapes import SIDE, Draws, Meaning, Scene, pixels, split
from cir_datasets.shapes.world import one_step_away

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
    with step_progress("shapes/train: drawing pictures", len(scenes)) as advance:
        for row, scene in enumerate(scenes):
            whole = pixels(scene)
            digest.update(whole.tobytes())
            found[row] = whole.transpose(2, 0, 1)
            advance(1)
    return found, digest.hexdigest()


class Neighbours:
    """Which pictures are one change away from which.

    Args:
        scenes: of the pictures.
    """

    def __init__(self, scenes: Sequence[Scene]) -> None:
        """Find each picture's neighbours."""
        by_meaning: dict[Meaning, list[int]] = defaultdict(list)
        for number, scene in enumerate(scenes):
            by_meaning[scene.meaning].append(number)
        near = {
            meaning: [number for other in one_step_away(meaning) for number in by_meaning.get(other, ())]
            for meaning in by_meaning
        }
        self._near = [near[scene.meaning] for scene in scenes]

    def walk(self, first: int, pictures: int, draws: Draws) -> list[int]:
        """A picture, one that is a change away from it, one that is a change away from that one, ...

        Args:
            first: number of the picture to start at.
            pictures: how many, no picture twice; fewer where a picture has no other neighbours.
            draws: decides which.
        """
        found = [first]
        while len(found) < pictures:
            near = [number for number in self._near[found[-1]] if number not in found]
            if not near:
                break
            found.append(draws.choice(near))
        return found
