"""What a step of the training sees: pictures a change apart, and what is said of them.

Two things decide whether the sum of a picture's and a text's vector means anything: captions that leave
things out and say the rest in any order, and relative captions, which say what a target has that a reference
lacks. Each lesson holds both. Its pictures stand in short walks, each a change away from the one before, so
that pictures are told apart by what captions say of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cir_datasets.shapes import Draws, Meaning, Scene, describe, difference, one_step_away
from examples.shapes_encoder.truth import facts_of, true_of


@dataclass(frozen=True)
class Saying:
    """What is said of the pictures of a lesson.

    Args:
        walk: pictures a walk, 2 or more.
        captions: partial captions a picture.
        keep: chances in percent that a partial caption mentions something; one is drawn for each caption.
        viewpoint: chance in percent that a relative caption mentions a viewpoint that differs.
    """

    walk: int = 4
    captions: int = 1
    keep: tuple[int, ...] = (25, 40, 60, 90)
    viewpoint: int = 15


@dataclass(frozen=True)
class Lesson:
    """Pictures, captions, and which belong together.

    Args:
        pictures: their numbers, no picture twice.
        captions: partial captions of the pictures, then relative captions.
        true: whether a caption is true of a picture, shape (captions, pictures).
        references: place in `pictures` of each relative caption's reference, shape (relative captions,).
        targets: whether a picture is what reference and relative caption ask for, shape (relative captions,
            pictures).
    """

    pictures: list[int]
    captions: list[str]
    true: NDArray[np.bool_]
    references: NDArray[np.int64]
    targets: NDArray[np.bool_]


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


class Lessons:
    """Lessons about scenes.

    Args:
        scenes: what is learned from.
        saying: what is said of them.
    """

    def __init__(self, scenes: Sequence[Scene], saying: Saying) -> None:
        """Find out what is true of every scene, and which are a change apart."""
        self.saying = saying
        self._scenes = scenes
        self._neighbours = Neighbours(scenes)
        self._facts = facts_of(scenes)
        numbers = {meaning: at for at, meaning in enumerate(dict.fromkeys(one.meaning for one in scenes))}
        self._meanings = np.array([numbers[one.meaning] for one in scenes])

    def lesson(self, firsts: Sequence[int], draws: Draws) -> Lesson:
        """A lesson.

        Args:
            firsts: numbers of the pictures at which walks start.
            draws: decides the walks and what is said.
        """
        walks = [self._neighbours.walk(first, self.saying.walk, draws) for first in firsts]
        pictures = list(dict.fromkeys(number for walk in walks for number in walk))
        place = {number: at for at, number in enumerate(pictures)}
        pairs = [
            (place[draws.choice([other for other in walk if other != target])], place[target])
            for walk in walks
            if len(walk) > 1
            for target in walk
        ]
        scenes = [self._scenes[number] for number in pictures]
        captions = [self._partial(scene, draws) for scene in scenes for _ in range(self.saying.captions)]
        partial = len(captions)
        captions += [self._relative(scenes[reference], scenes[target], draws) for reference, target in pairs]
        true = true_of(captions, self._facts[pictures])
        references, targets = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        # A thing that changes in two ways is taken for another thing, and "also a small blue star and no blue
        # star" is true of nothing; the benchmark asks nothing of the kind either.
        sound = true[np.arange(partial, len(captions)), targets]
        kept = np.concatenate([np.arange(partial), partial + np.flatnonzero(sound)])
        captions, true = [captions[at] for at in kept], true[kept]
        references, targets = references[sound], targets[sound]
        meanings = self._meanings[pictures]
        wanted = true[partial:] & (meanings[targets][:, None] == meanings)
        return Lesson(pictures, captions, true, references, wanted)

    def _partial(self, scene: Scene, draws: Draws) -> str:
        return describe(scene, seed=draws.below(1 << 32), keep=draws.choice(self.saying.keep))

    def _relative(self, reference: Scene, target: Scene, draws: Draws) -> str:
        view = draws.chance(self.saying.viewpoint)
        return difference(reference, target, viewpoint=view, seed=draws.below(1 << 32))
