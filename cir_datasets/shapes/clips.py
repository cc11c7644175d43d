"""Clips: short videos of shapes whose scenes change step by step, and the scene behind each of their frames.

A clip has a number, and its number decides all of it. It is a row of shots. A shot begins with a scene; later
in it one or two things about that scene are different for some seconds, in several layouts, and then again
others. In every fifth clip nothing changes. The frame at second 3 of clip 12 has the id
`clip-000012/000003.jpg`, which is how `cir make zerosight` names it: by it the oracle knows the scene.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from cir_datasets.common.atomic import whole_file
from cir_datasets.common.progress import step_progress
from cir_datasets.errors import DatasetError, missing_extra
from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.edits import altered, random_scene, rearranged, retaken
from cir_datasets.shapes.families import MEANING_KINDS
from cir_datasets.shapes.render import SIDE, pixels
from cir_datasets.shapes.world import Scene
from cir_metrics.errors import CallError

FRAMES_A_SECOND = 4
MOST_CLIPS = 100_000
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


def write_clips(folder: str | Path, videos: int, *, first: int = 0) -> list[Path]:
    """Write clips as video files: MPEG-4 in MP4, 96 x 96, four frames a second.

    Args:
        folder: made where it is missing.
        videos: how many, from 1.
        first: number of the first.

    Returns:
        The files, `clip-000000.mp4` and so on. One that is there already is left alone.

    Raises:
        CallError: a number is out of range.
        DatasetError: a file cannot be written.
        MissingExtraError: PyAV is not installed.
    """
    if videos < 1 or first < 0 or first + videos > MOST_CLIPS:
        raise CallError(
            f"{videos} clips from number {first}: there are 0 to {MOST_CLIPS - 1:,}. Fix: ask for those."
        )
    root = Path(folder).expanduser().absolute()
    paths = [root / f"clip-{number:06d}.mp4" for number in range(first, first + videos)]
    try:
        root.mkdir(parents=True, exist_ok=True)
        with step_progress("shapes: writing clips", videos) as advance:
            for number, path in enumerate(paths, start=first):
                if not path.is_file():
                    _write(clip(number), path)
                advance(1)
    except OSError as error:
        raise DatasetError(
            f"{error.filename or root}: cannot be written: {error.strerror}. Fix: use another folder."
        ) from error
    return paths


def _write(scenes: tuple[Scene, ...], path: Path) -> None:
    try:
        import av
    except ImportError as error:
        raise missing_extra("the writing of clips", "PyAV", "construction") from error
    # `bitexact`: without it a file holds the version of the library that wrote it.
    with whole_file(path) as file, av.open(file, "w", format="mp4", options={"fflags": "+bitexact"}) as out:
        stream = out.add_stream("mpeg4", rate=FRAMES_A_SECOND, options={"flags": "+bitexact", "qscale": "2"})
        stream.width = stream.height = SIDE
        stream.pix_fmt = "yuv420p"
        stream.codec_context.qmin, stream.codec_context.qmax = 2, 2
        for scene in scenes:
            frame = av.VideoFrame.from_ndarray(pixels(scene), format="rgb24")
            for _ in range(FRAMES_A_SECOND):
                out.mux(stream.encode(frame))
                frame.pts = None
        out.mux(stream.encode(None))
