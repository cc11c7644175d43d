"""The galleries of the benchmark, their queries and sessions, and their pictures.

A split has one gallery, which its queries and its sessions share. Positives are the pictures that fulfil a
query's goal, wherever they come from. Hard negatives are the pictures that miss it by one point, and those
that mean the same as the reference: the caption ignored. No meaning of `val` occurs in `train`. Everything
is made by rule and from nothing; pictures are had by id, as one array, as a manifest, and as files.

Clips are short videos whose scenes change step by step, a scene a second; `examples/clips.py` writes them. A
clip has a number, and its number decides all of it. It is a row of shots. A shot begins with a scene; later
in it one or two things about that scene are different for some seconds, in several layouts, and then again
others. In every fifth clip nothing changes. The frame at second 3 of clip 12 has the id
`clip-000012/000003.jpg`, which is how `cir make zerosight` names it: by it the oracle knows the scene.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cir_datasets.common.atomic import whole_file, write_errors
from cir_datasets.common.paths import DECODING_ERRORS, open_picture
from cir_datasets.common.progress import step_progress
from cir_datasets.errors import DatasetError
from cir_datasets.rows.records import Row, image_row, session_row
from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.edits import altered, random_scene, rearranged, retaken
from cir_datasets.shapes.language import VIEWS, is_rival, noun_phrase, read
from cir_datasets.shapes.queries import (
    MEANING_KINDS,
    QUESTIONS,
    EditFamily,
    Journey,
    MadeQuery,
    aspects,
    family,
    journey,
)
from cir_datasets.shapes.render import SIDE, Pixels, pixel_sha256, pixels
from cir_datasets.shapes.world import (
    BACKGROUNDS,
    COLOURS,
    LOOKS,
    MOST_OBJECTS,
    SHAPES,
    Change,
    Goal,
    Look,
    Meaning,
    Scene,
    distance,
    less_one,
    one_step_away,
)
from cir_metrics.errors import CallError, UnknownNameError

if TYPE_CHECKING:
    from PIL.Image import Image

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


@dataclass(frozen=True, slots=True)
class _SplitSize:
    references: int
    sessions: tuple[tuple[int, int], ...]
    """(number of turns, how many)."""


_SIZES = {
    "val": _SplitSize(references=100, sessions=((2, 92), (3, 56), (4, 28), (5, 15), (6, 9))),
    "train": _SplitSize(references=700, sessions=((2, 230), (3, 140), (4, 70), (5, 38), (6, 22))),
}
SPLITS = tuple(_SIZES)


@dataclass(frozen=True, slots=True)
class Split:
    """One split: the scenes of its gallery (scene i is image `<name>-<i, six digits>`) and its rows."""

    name: str
    scenes: tuple[Scene, ...]
    queries: tuple[Row, ...]
    sessions: tuple[Row, ...]
    goals: tuple[Goal, ...]
    """What each query asks for."""

    @property
    def image_ids(self) -> list[str]:
        """Ids of the gallery, in its order."""
        return [f"{self.name}-{i:06d}" for i in range(len(self.scenes))]


@functools.cache
def split(name: str) -> Split:
    """A split, made on first use (`val` in about a second, `train` in several) and kept.

    Raises:
        UnknownNameError: there is no such split.
    """
    if name not in _SIZES:
        raise UnknownNameError(f"shapes has no split {name!r}. Fix: one of {', '.join(SPLITS)}.")
    size = _SIZES[name]
    avoid = _meanings("val") if name == "train" else frozenset()
    families = [family(name, i, avoid=avoid) for i in range(size.references)]
    lengths = Draws(name, "lengths").shuffled([turns for turns, count in size.sessions for _ in range(count)])
    journeys = [journey(name, i, turns, avoid=avoid) for i, turns in enumerate(lengths)]
    while True:  # until no picture answers what was asked elsewhere
        made = [scene for one in families for scene in one.scenes]
        made += [scene for one in journeys for scene in one.scenes]
        scenes = tuple(Draws(name, "gallery").shuffled(list(dict.fromkeys(made))))
        gallery = _SceneIndex(name, scenes)
        rivalled = [i for i, one in enumerate(families) if any(map(gallery.has_rival, _asked_of(one)))]
        lost = [i for i, one in enumerate(journeys) if gallery.has_rival(_asked_last(one))]
        if not rivalled and not lost:
            break
        for i in rivalled:
            families[i] = family(name, i, avoid=avoid, first_attempt=families[i].attempt + 1)
        for i in lost:
            again = journeys[i].attempt + 1
            journeys[i] = journey(name, i, lengths[i], avoid=avoid, first_attempt=again)
    asked = [(found.reference, found.questions[i]) for i in range(QUESTIONS) for found in families]
    queries = tuple(_query(f"shapes_{name}_{i:05d}", *query, gallery) for i, query in enumerate(asked))
    config = f"multiturn_{name}"
    sessions = tuple(
        _session(f"shapes_{config}_{i:05d}", config, found, gallery) for i, found in enumerate(journeys)
    )
    return Split(name, scenes, queries, sessions, tuple(question.goal for _, question in asked))


def _meanings(name: str) -> frozenset[Meaning]:
    return frozenset(scene.meaning for scene in split(name).scenes)


class _Asked(NamedTuple):
    """A question: what is seen, what is said of it, what is meant."""

    reference: Scene
    caption: str
    target: Scene


class _SceneIndex:
    """The pictures of a split, findable by scene and by meaning."""

    def __init__(self, name: str, scenes: Sequence[Scene]) -> None:
        self.id_of = {scene: f"{name}-{i:06d}" for i, scene in enumerate(scenes)}
        self.by_meaning: dict[Meaning, list[Scene]] = defaultdict(list)
        self.with_one_more: dict[Meaning, list[Scene]] = defaultdict(list)
        for scene in scenes:
            self.by_meaning[scene.meaning].append(scene)
        for meaning, found in self.by_meaning.items():
            for less in less_one(meaning):
                self.with_one_more[less].extend(found)
        self._meanings = list(self.by_meaning)
        self._backgrounds = np.array([BACKGROUNDS.index(each.background) for each in self._meanings])
        self._things = np.array([len(each.looks) for each in self._meanings])
        self._by_shape = np.zeros((len(self._meanings), len(SHAPES)), dtype=np.int64)
        self._by_colour = np.zeros((len(self._meanings), len(COLOURS)), dtype=np.int64)
        for row, each in enumerate(self._meanings):
            for look in each.looks:
                self._by_shape[row, SHAPES.index(look.shape)] = _number(look)
                self._by_colour[row, COLOURS.index(look.colour)] = _number(look)

    def has_rival(self, asked: _Asked) -> bool:
        """Whether some picture answers what is asked as well as the target, and means something else."""
        return any(is_rival(scene, *asked) for scene in self._perhaps_rivals(asked))

    def _perhaps_rivals(self, asked: _Asked) -> Iterator[Scene]:
        """The pictures with the shapes that are asked for and not clearly further away than the target.

        A thing that shares neither shape nor colour with one of the reference is added or removed, and of the
        others each that has no equal takes part in a change.
        """
        meaning = asked.reference.meaning
        equal, near, rivals = np.zeros((3, len(self._meanings)), dtype=np.int64)
        for look in meaning.looks:
            alike = self._by_shape[:, SHAPES.index(look.shape)]
            coloured = self._by_colour[:, COLOURS.index(look.colour)]
            equal += alike == _number(look)
            near += (alike > 0) | (coloured > 0)
            rivals += (alike > 0) + ((coloured > 0) & (coloured != alike))
        rivals = np.minimum(rivals, self._things)
        alone = self._things - rivals + len(meaning.looks) - near
        least = alone + np.maximum(near, rivals) - equal
        least += self._backgrounds != BACKGROUNDS.index(meaning.background)
        fit = least <= distance(meaning, asked.target.meaning)
        for mention in read(asked.caption).mentions:
            if mention.number:
                fit &= self._by_shape[:, SHAPES.index(mention.shape)] > 0
        return (scene for i in np.flatnonzero(fit) for scene in self.by_meaning[self._meanings[i]])

    def ids(self, scenes: Collection[Scene]) -> list[str]:
        """Their ids, sorted."""
        return sorted(self.id_of[scene] for scene in scenes)

    def fulfilling(self, goal: Goal) -> list[Scene]:
        """The pictures that miss a goal in nothing."""
        return [scene for scene in self.by_meaning.get(goal.meaning, ()) if not goal.unnamed_misses(scene)]

    def one_off(self, goal: Goal) -> list[Scene]:
        """The pictures that miss a goal in exactly one point."""
        same = [scene for scene in self.by_meaning.get(goal.meaning, ()) if goal.unnamed_misses(scene) == 1]
        near = [scene for other in one_step_away(goal.meaning) for scene in self.by_meaning.get(other, ())]
        near += self.with_one_more.get(goal.meaning, ())
        return same + [scene for scene in near if not goal.unnamed_misses(scene)]


def _asked_of(found: EditFamily) -> list[_Asked]:
    return [_Asked(found.reference, question.caption, question.target) for question in found.questions]


def _asked_last(found: Journey) -> _Asked:
    return _Asked(*found.steps[-1], found.target)


def _number(look: Look) -> int:
    """A number of its own for each look, above 0."""
    number = 0
    for place, names in zip(look[:4], LOOKS.values(), strict=True):
        number = number * len(names) + names.index(place)
    return number * MOST_OBJECTS + look.number


def _query(query_id: str, reference: Scene, found: MadeQuery, gallery: _SceneIndex) -> Row:
    positives = gallery.fulfilling(found.goal)
    ignoring = [scene for scene in gallery.by_meaning[reference.meaning] if scene not in positives]
    negatives = {scene for scene in (*gallery.one_off(found.goal), *ignoring) if scene != reference}
    return {
        "query_id": query_id,
        "reference_image_id": gallery.id_of[reference],
        "captions": [found.caption],
        "relative_caption": found.caption,
        "target_image_id": gallery.id_of[found.target],
        "positive_image_ids": gallery.ids(positives),
        "negative_image_ids": gallery.ids(negatives),
        "subset_image_ids": gallery.ids((reference, found.target, *found.distractors)),
        "aspects": aspects(found.changes),
        "changes": [_in_words(change) for change in found.changes],
    }


def _session(session_id: str, config: str, found: Journey, gallery: _SceneIndex) -> Row:
    turns = ((gallery.id_of[step.reference], step.caption) for step in found.steps)
    return session_row(session_id, config, gallery.ids(gallery.by_meaning[found.target.meaning]), turns)


def _in_words(change: Change) -> Row:
    return {"kind": change.kind, "before": _words(change.before), "after": _words(change.after, change.cell)}


def _words(value: Look | str | None, cell: int | None = None) -> str | None:
    if isinstance(value, Look):
        return noun_phrase(value, cell=cell)
    return VIEWS.get(value, f"{value} background") if value is not None else None


LICENSE = "CC0-1.0"
"""Of the pictures: nobody's permission is needed."""

_PREFIX = "multiturn_"
_IMAGE_ID = re.compile(r"([a-z]+)-(\d{6})")


def split_of(config: str) -> Split:
    """The split that a configuration belongs to; `val` and `multiturn_val` share one gallery.

    Raises:
        UnknownNameError: shapes has no such configuration.

    Example:
        >>> split_of("multiturn_val").name
        'val'
    """
    name = config.removeprefix(_PREFIX)
    if name not in SPLITS:
        known = ", ".join(f"{prefix}{known}" for known in SPLITS for prefix in ("", _PREFIX))
        raise UnknownNameError(f"shapes has no configuration {config!r}. Fix: use one of {known}.")
    return split(name)


def scene(image_id: str) -> Scene:
    """The scene graph behind a picture.

    Raises:
        UnknownNameError: no gallery of shapes holds that image, and no clip.

    Example:
        >>> scene("val-000123").background
        'starry'
    """
    of_clip = scene_of_frame(image_id)
    if of_clip is not None:
        return of_clip
    found = _IMAGE_ID.fullmatch(image_id)
    if found is not None and found[1] in SPLITS:
        scenes = split(found[1]).scenes
        if int(found[2]) < len(scenes):
            return scenes[int(found[2])]
    raise UnknownNameError(
        f"shapes has no image {image_id!r}. Fix: use an id of its galleries, such as 'val-000123', or of a "
        "clip, such as 'clip-000012/000003.jpg'."
    )


def picture(image_id: str) -> Image:
    """A picture as a Pillow image, 96 x 96 RGB.

    Raises:
        UnknownNameError: no gallery of shapes holds that image.

    Example:
        >>> picture("val-000123").size
        (96, 96)
    """
    from PIL import Image

    return Image.fromarray(pixels(scene(image_id)))


def relative_path(image_id: str) -> str:
    """Where a picture lies below the image folder of shapes.

    Example:
        >>> relative_path("val-000123")
        'val/000123.png'
    """
    name, _, number = image_id.partition("-")
    return f"{name}/{number}.png"


def load_pixels(config: str, *, shrink: int = 1) -> tuple[list[str], Pixels]:
    """All pictures of a configuration's gallery as one array.

    Args:
        config: `val`, `train`, `multiturn_val` or `multiturn_train`.
        shrink: 1 for whole pictures (620 MB for `train`); n averages squares of n by n pixels.

    Returns:
        Image ids in the manifest's order, and RGB values of shape (images, 96 / shrink, 96 / shrink, 3).

    Raises:
        UnknownNameError: shapes has no such configuration.
        CallError: `shrink` does not divide 96.

    Example:
        >>> ids, thumbnails = load_pixels("val", shrink=8)
        >>> thumbnails.shape == (len(ids), 12, 12, 3)
        True
    """
    if shrink < 1 or SIDE % shrink:
        raise CallError(f"shrink={shrink}; it must divide {SIDE}. Fix: use 1, 2, 3, 4, 6, 8, ...")
    found = split_of(config)
    side = SIDE // shrink
    out = np.empty((len(found.scenes), side, side, 3), dtype=np.uint8)
    with step_progress(f"shapes/{config}: drawing pictures", len(found.scenes)) as advance:
        for i, one in enumerate(found.scenes):
            whole = pixels(one)
            if shrink == 1:
                out[i] = whole
            else:
                sums = whole.reshape(side, shrink, side, shrink, 3).sum(axis=(1, 3), dtype=np.int64)
                out[i] = (sums + shrink * shrink // 2) // (shrink * shrink)
            advance(1)
    return found.image_ids, out


def manifest(config: str) -> Iterator[Row]:
    """Rows of a configuration's gallery manifest, with hashes of the decoded pixels.

    PNG bytes differ between builds of zlib, so that size and sha256 of the files are null.

    Raises:
        UnknownNameError: shapes has no such configuration.
    """
    found = split_of(config)
    with step_progress(f"shapes/{config}: drawing pictures", len(found.scenes)) as advance:
        for image_id, one in zip(found.image_ids, found.scenes, strict=True):
            yield image_row(
                image_id,
                relative_path=relative_path(image_id),
                pixel_sha256=pixel_sha256(pixels(one)),
                width=SIDE,
                height=SIDE,
                license=LICENSE,
            )
            advance(1)


def write_pictures(config: str, folder: str | Path) -> int:
    """Write a configuration's gallery as PNG files, laid out as the manifest says.

    A file that already holds the right pixels is left alone, so that an interrupted run can be repeated; each
    file appears whole or not at all.

    Args:
        config: `val`, `train`, `multiturn_val` or `multiturn_train`.
        folder: the image folder of shapes (`CIR_IMAGES/shapes`); made where it is missing.

    Returns:
        The number of files written now.

    Raises:
        UnknownNameError: shapes has no such configuration.
        DatasetError: a file cannot be written.
    """
    from PIL import Image

    found = split_of(config)
    root = Path(folder).expanduser().absolute()
    written = 0
    with (
        step_progress(f"shapes/{config}: writing pictures", len(found.scenes)) as advance,
        write_errors(root / found.name, DatasetError, "use another folder."),
    ):
        for image_id, one in zip(found.image_ids, found.scenes, strict=True):
            path, whole = root / relative_path(image_id), pixels(one)
            if not _holds(path, whole):
                with whole_file(path) as file:
                    Image.fromarray(whole).save(file, format="PNG")
                written += 1
            advance(1)
    return written


def _holds(path: Path, whole: Pixels) -> bool:
    """Whether a file is there, undamaged, and has these pixels."""
    try:
        with open_picture(path, ["PNG"]) as image:
            return np.array_equal(np.asarray(image.convert("RGB")), whole)
    except DECODING_ERRORS:
        return False
