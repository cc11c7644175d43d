"""Clips: scenes of shapes that change step by step, second by second; `examples/clips.py` makes videos.

A clip has a number, and its number decides all of it. It is a row of shots. A shot begins with a scene; later
in it one or two things about that scene are different for some seconds, in several layouts, and then again
others. In every fifth clip nothing changes. The frame at second 3 of clip 12 has the id
`clip-000012/000003.jpg`, which is how `cir make zerosight` names it: by it the oracle knows the scene.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.edits import altered, random_scene, rearranged, retaken
from cir_datasets.shapes.queries import MEANING_KINDS
from cir_datasets.shapes.world import Scene

_FRAME_ID = re.compile(r"clip-(\d{6})/(\d{6})\.(?:jpg|png)")
_KINDS = (*MEANING_KINDS, ("viewpoint", 12))
_SHOTS = ((2, 50), (3, 50))
_STATES = ((2, 40), (3, 60))
_SECONDS = ((2, 30), (3, 40), (4, 30))
_STILL_EVERY = 5
_STILL_SECONDS = 20
_PATIENCE = 20


@functools.lru_cache(maxsize=256)
def clip(number: int) -> tuple[Scene, ...]:
    """The scenes of a clip, one a second.

    Args:
        number: from 0.

    Example:
        >>> len(clip(4)), len({scene.meaning for scene in clip(4)})
        (20, 1)
    """
    draws = Draws("clip", number)
    if number % _STILL_EVERY == _STILL_EVERY - 1:
        only = random_scene(draws)
        return tuple(retaken(only, draws) for _ in range(_STILL_SECONDS))
    shots = draws.weighted(_SHOTS)
    return tuple(scene for _ in range(shots) for scene in _shot(draws))


def _shot(draws: Draws) -> Iterator[Scene]:
    first = random_scene(draws, fewest_things=2)
    yield from _held(first, draws)
    for _ in range(draws.weighted(_STATES)):
        yield from _held(_changed(first, draws), draws)


def _held(scene: Scene, draws: Draws) -> Iterator[Scene]:
    """A scene for some seconds, its things moving about."""
    yield scene
    for _ in range(draws.weighted(_SECONDS)):
        yield rearranged(scene, draws, viewpoint=scene.viewpoint)


def _changed(scene: Scene, draws: Draws) -> Scene:
    """The scene after one or two changes."""
    for _ in range(1 + draws.chance(35)):
        for _ in range(_PATIENCE):
            step = altered(scene, draws.weighted(_KINDS), draws)
            if step is not None:
                scene = step[0]
                break
    return scene


def scene_of_frame(frame_id: str) -> Scene | None:
    """The scene behind a frame of a clip, or None where the id is not one of a clip.

    Example:
        >>> scene_of_frame("clip-000004/000003.jpg") == clip(4)[3]
        True
        >>> scene_of_frame("clip-000004/000099.jpg") is None
        True
    """
    found = _FRAME_ID.fullmatch(frame_id)
    if found is None:
        return None
    scenes, second = clip(int(found[1])), int(found[2])
    return scenes[second] if second < len(scenes) else None
