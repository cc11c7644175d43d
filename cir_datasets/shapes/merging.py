"""Captions of the world of shapes, read back: what a reference becomes when a relative caption is true of it.

This is the reader whom every query was checked against: a caption from which it does not get the target is
not asked, nor one that a picture of another meaning answers as well. Out of scope: English in general; only
captions in the manner of `cir_datasets.shapes.captions`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import NamedTuple

from cir_datasets.errors import RecordError
from cir_datasets.shapes.captions import NUMBERS, PLACES, VIEWS, plural
from cir_datasets.shapes.world import (
    BACKGROUNDS,
    CELLS,
    COLOURS,
    SHAPES,
    SIZES,
    TEXTURES,
    Scene,
    Thing,
    distance,
)


class Mention(NamedTuple):
    """A thing as a caption mentions it; None where the caption does not say."""

    number: int
    size: str | None
    texture: str | None
    colour: str | None
    shape: str
    cell: int | None
    added: bool
    """Whether it is said to be there "also"."""
    counted: bool = False
    """Whether a number is said, where "a star" may leave it open."""


class Reading(NamedTuple):
    """What a caption says."""

    mentions: tuple[Mention, ...]
    background: str | None
    viewpoint: str | None


def _any(words: tuple[str, ...]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_ARTICLES = ("a", "an")
_COUNTS = {**dict.fromkeys(_ARTICLES, 1), **{word: number for number, word in enumerate(NUMBERS)}}
_SINGULAR = {form: shape for shape in SHAPES for form in (shape, plural(shape))}
_THING = re.compile(
    rf"(?P<added>also )?(?P<count>{_any(tuple(_COUNTS))}) (?:(?P<size>{_any(SIZES)}) )?"
    rf"(?:(?P<texture>{_any(TEXTURES)}) )?(?:(?P<colour>{_any(COLOURS)}) )?"
    rf"(?P<shape>{_any(tuple(_SINGULAR))})(?: (?P<place>{_any(PLACES)}))?"
)
_BACKGROUND = re.compile(rf"(?:\bon )?\ban? (?P<background>{_any(BACKGROUNDS)}) background")
_VIEW = re.compile(_any(tuple(VIEWS.values())))
_BETWEEN = re.compile(r",| and ")


@functools.lru_cache(maxsize=4096)
def read(caption: str) -> Reading:
    """What a caption says.

    Raises:
        RecordError: a phrase is not in the language of this world.

    Example:
        >>> reading = read("two blue stars on a sandy background")
        >>> reading.mentions[0].number, reading.mentions[0].colour, reading.background
        (2, 'blue', 'sandy')
    """
    views = {words: view for view, words in VIEWS.items()}
    view = _VIEW.search(caption)
    background = _BACKGROUND.search(caption)
    rest = _BACKGROUND.sub(",", _VIEW.sub("", caption))
    mentions = []
    for phrase in filter(None, (part.strip() for part in _BETWEEN.split(rest))):
        found = _THING.fullmatch(phrase)
        if found is None:
            raise RecordError(
                f"caption {caption!r}: {phrase!r} is not in the language of shapes. "
                "Fix: say it as cir_datasets.shapes.describe and difference do."
            )
        mentions.append(
            Mention(
                number=_COUNTS[found["count"]],
                size=found["size"],
                texture=found["texture"],
                colour=found["colour"],
                shape=_SINGULAR[found["shape"]],
                cell=PLACES.index(found["place"]) if found["place"] else None,
                added=bool(found["added"]),
                counted=found["count"] not in _ARTICLES,
            )
        )
    return Reading(
        tuple(mentions),
        background["background"] if background else None,
        views[view.group()] if view else None,
    )


def merge(reference: Scene, relative_caption: str) -> Scene:
    """The scene that a relative caption makes of its reference.

    "no X" takes away and "also X" adds (large and plain unless said otherwise). Any other mention alters
    what is left: the thing of that shape, else the one of that colour, which then takes the shape. What is
    not mentioned stays.

    Raises:
        RecordError: the caption is not in the language of this world, or mentions a thing that the reference
            does not allow to be found, or leads to a scene that cannot be.

    Example:
        >>> first = Scene((Thing("circle", "red", "small", "plain", (4,)),), "grassy")
        >>> meaning = merge(first, "two blue circles on a sandy background").meaning
        >>> [tuple(look) for look in meaning.looks], meaning.background
        ([('circle', 'blue', 'small', 'plain', 2)], 'sandy')
    """
    reading = read(relative_caption)
    absent = [mention for mention in reading.mentions if mention.number == 0]
    left = [thing for thing in reference.things if not any(_fits(thing, mention) for mention in absent)]
    things = list(left)
    for mention in reading.mentions:
        if mention.number == 0:
            continue
        free = _free(things, mention.cell)
        if mention.added:
            things.append(_altered(Thing(mention.shape, "white", "large", "plain", ()), mention, free))
            continue
        old = _meant(left, mention, relative_caption)
        things = [_altered(old, mention, free) if thing is old else thing for thing in things]
    return replace(
        reference,
        things=tuple(things),
        background=reading.background or reference.background,
        viewpoint=reading.viewpoint or reference.viewpoint,
    )


def is_rival(scene: Scene, reference: Scene, relative_caption: str, target: Scene) -> bool:
    """Whether a scene answers a query as well as its target does, though it means something else.

    It does where all that the caption says is true of it, "a star" taken for one or more, and it is no more
    changes away from the reference than the target.

    Args:
        scene: any scene.
        reference: of the query.
        relative_caption: of the query.
        target: of the query.

    Raises:
        RecordError: the caption is not in the language of this world.

    Example:
        >>> moon = Thing("moon", "blue", "small", "plain", (0,))
        >>> dots = [Thing("circle", colour, "small", "plain", (4,)) for colour in ("red", "green")]
        >>> reference, other = (Scene((dot, moon), "sandy") for dot in dots)
        >>> is_rival(other, reference, "no red circle", target=Scene((moon,), "sandy"))
        True
    """
    if not is_true(relative_caption, scene) or scene.meaning == target.meaning:
        return False
    return distance(reference.meaning, scene.meaning) <= distance(reference.meaning, target.meaning)


def is_true(caption: str, scene: Scene) -> bool:
    """Whether all that a caption says is true of a scene; "a star" may be one or more, "one star" may not.

    Raises:
        RecordError: the caption is not in the language of this world.

    Example:
        >>> scene = Scene((Thing("star", "blue", "large", "plain", (0, 1)),), "sandy")
        >>> [is_true(caption, scene) for caption in ("a blue star", "one blue star", "no red star")]
        [True, False, True]
    """
    reading = read(caption)
    if reading.background not in (None, scene.background) or reading.viewpoint not in (None, scene.viewpoint):
        return False
    return all(
        any(_shows(thing, mention) for thing in scene.things) == (mention.number > 0)
        for mention in reading.mentions
    )


def _shows(thing: Thing, mention: Mention) -> bool:
    """Whether a thing is what a mention speaks of, or denies."""
    return (
        _fits(thing, mention)
        and mention.size in (None, thing.size)
        and mention.texture in (None, thing.texture)
        and (not mention.counted or mention.number in (0, len(thing.cells)))
        and (mention.cell is None or thing.cells == (mention.cell,))
    )


def _fits(thing: Thing, mention: Mention) -> bool:
    return thing.shape == mention.shape and mention.colour in (None, thing.colour)


def _meant(things: list[Thing], mention: Mention, caption: str) -> Thing:
    for thing in things:
        if thing.shape == mention.shape:
            return thing
    for thing in things:
        if mention.colour is not None and thing.colour == mention.colour:
            return thing
    raise RecordError(
        f"caption {caption!r}: the reference has no {mention.shape} that it could mean, nor anything of that "
        'colour. Fix: say "also" where a thing is added.'
    )


def _altered(thing: Thing, mention: Mention, free: list[int]) -> Thing:
    cells = thing.cells
    if mention.cell is not None:
        cells = (mention.cell,)
    return Thing(
        shape=mention.shape,
        colour=mention.colour or thing.colour,
        size=mention.size or thing.size,
        texture=mention.texture or thing.texture,
        cells=(*cells, *free)[: mention.number],
    )


def _free(things: list[Thing], wanted: int | None) -> list[int]:
    taken = {cell for other in things for cell in other.cells}
    return [cell for cell in range(CELLS) if cell not in taken and cell != wanted]
