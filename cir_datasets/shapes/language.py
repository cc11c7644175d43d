"""The language of shapes: captions of scenes, relative captions, and what reading them makes of a scene.

Relative captions describe what the target has ("a blue star and a sandy background"), as most captions of
composed image retrieval do, in the words that descriptions of scenes use too. What reads them back is the
reader whom every query was checked against: a caption from which it does not get the target is not asked, nor
one that a picture of another meaning answers as well. Out of scope: English in general.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from cir_datasets.errors import RecordError
from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.world import (
    BACKGROUNDS,
    CELLS,
    COLOURS,
    SHAPES,
    SIZES,
    TEXTURES,
    WORLD,
    Change,
    Look,
    Scene,
    Thing,
    changes,
    distance,
)

NUMBERS = ("no", "one", "two", "three", "four")
PLACES = tuple(WORLD["places"])
"""How each cell of the grid is called."""

VIEWS: Mapping[str, str] = {name: view["words"] for name, view in WORLD["viewpoints"].items()}
"""How each viewpoint is called; `straight` usually goes without saying."""

ADJECTIVES = ("size", "texture", "colour")
"""The order of adjectives: "a large striped blue star"."""

_CHANGED = {"colour": "colour", "shape": "colour", "size": "size", "texture": "texture"}


def describe(scene: Scene, *, positions: bool = False, seed: int | None = None, keep: int = 60) -> str:
    """A caption of a scene: complete, or a random part of what could be said.

    Args:
        scene: what is described.
        positions: whether the complete caption says where each single object stands.
        seed: without it the caption is complete, things in the scene's order; with it things and attributes
            are left out at random, the order is shuffled, and now and then something is said that goes
            without saying ("plain", "seen straight on", "no heart").
        keep: with a seed, chance in percent that an attribute or a thing is mentioned.

    Returns:
        English without a capital at the start and without a full stop.

    Example:
        >>> from cir_datasets.shapes.world import Thing
        >>> scene = Scene((Thing("circle", "orange", "small", "dotted", (0, 1)),
        ...                Thing("star", "blue", "large", "plain", (4,))), "sandy", "close")
        >>> describe(scene)
        'two small dotted orange circles and a large blue star on a sandy background, seen from up close'
        >>> describe(scene, seed=5)
        'two small dotted circles and also a plain blue star on a sandy background'
    """
    if seed is not None:
        return _part_of(scene, Draws("caption", seed), keep)
    items = []
    for thing in scene.things:
        unspoken = {"texture"} if thing.texture == "plain" else set()
        cell = thing.cells[0] if positions and len(thing.cells) == 1 else None
        items.append(noun_phrase(thing.look, [word for word in ADJECTIVES if word not in unspoken], cell))
    view = None if scene.viewpoint == "straight" else scene.viewpoint
    return _sentence(items, scene.background, view)


def difference(
    reference: Scene,
    target: Scene,
    *,
    viewpoint: bool = False,
    most: int | None = None,
    seed: int | None = None,
) -> str:
    """A relative caption: what the target has that the reference lacks.

    Args:
        reference: the scene that the reader sees.
        target: the scene that the reader is to find.
        viewpoint: whether a different viewpoint is mentioned.
        most: mention at most so many changes (the first, or random ones with a seed).
        seed: varies wording and order.

    Returns:
        The caption; a description of the target where the two scenes mean the same.

    Example:
        >>> from cir_datasets.shapes.world import Thing
        >>> first = Scene((Thing("circle", "red", "small", "plain", (4,)),), "grassy")
        >>> second = Scene((Thing("circle", "orange", "small", "plain", (4,)),), "sandy")
        >>> difference(first, second)
        'an orange circle on a sandy background'
        >>> difference(first, second, most=1)
        'an orange circle'
    """
    found: Sequence[Change] = changes(reference, target, viewpoint=viewpoint)
    if not found:
        return describe(target)
    draws = None if seed is None else Draws("difference", seed)
    if draws is not None:
        found = draws.shuffled(found)
    return relative_caption(found[:most], draws)


def relative_caption(found: Iterable[Change], draws: Draws | None = None) -> str:
    """The relative caption that mentions the given changes.

    Changes of one look are one phrase. With `draws`, unchanged attributes are mentioned now and then and the
    order of the phrases varies.

    Example:
        >>> before = Look("heart", "black", "small", "plain", 1)
        >>> larger = Change("size", before, before._replace(size="large"))
        >>> relative_caption([larger, Change("background", "sandy", "snowy")])
        'a large heart on a snowy background'
    """
    mentions: dict[Look, dict[str, int | None]] = {}
    added: list[str] = []
    absent: list[str] = []
    background = view = None
    for change in found:
        if change.kind == "background":
            background = str(change.after)
        elif change.kind == "viewpoint":
            view = str(change.after)
        elif change.kind == "negation" and isinstance(change.before, Look):
            absent.append(_absent(change.before))
        elif change.kind == "addition" and isinstance(change.after, Look):
            # Of a thing that the reader has never seen nothing goes without saying, not even "plain".
            added.append(f"also {noun_phrase(change.after)}")
        elif isinstance(change.after, Look):
            said = mentions.setdefault(change.after, {})
            said[_CHANGED.get(change.kind, change.kind)] = change.cell
    items = [_mention(look, said, draws) for look, said in mentions.items()]
    if draws is not None:
        items, added, absent = draws.shuffled(items), draws.shuffled(added), draws.shuffled(absent)
    listed = draws is not None and draws.chance(50)
    return _sentence(items + added, background, view, absent=absent, listed=listed)


def noun_phrase(
    look: Look, words: Sequence[str] = ADJECTIVES, cell: int | None = None, *, counted: bool = False
) -> str:
    """A thing in words: number or article, the adjectives asked for, noun, place.

    `counted` says "one" for a single object, where its number is the point.

    Example:
        >>> noun_phrase(Look("cross", "orange", "small", "plain", 2), ["colour"])
        'two orange crosses'
        >>> noun_phrase(Look("cross", "orange", "small", "plain", 1), ["colour"], cell=3)
        'an orange cross on the left'
    """
    adjectives = [str(getattr(look, word)) for word in ADJECTIVES if word in words]
    body = [*adjectives, look.shape if look.number == 1 else plural(look.shape)]
    first = _article(body[0]) if look.number == 1 and not counted else NUMBERS[look.number]
    return " ".join([first, *body, *([] if cell is None else [PLACES[cell]])])


def plural(noun: str) -> str:
    """The plural of a shape's name.

    Example:
        >>> plural("cross"), plural("star")
        ('crosses', 'stars')
    """
    return noun + ("es" if noun.endswith("s") else "s")


def _mention(look: Look, said: dict[str, int | None], draws: Draws | None) -> str:
    words = [word for word in ADJECTIVES if word in said]
    if draws is not None and "texture" not in said and look.texture == "plain":
        words += [word for word in ("size", "colour") if word not in said and draws.chance(30)]
    elif draws is not None:
        words += [word for word in ADJECTIVES if word not in said and draws.chance(30)]
    return noun_phrase(look, words, said.get("position"), counted="cardinality" in said)


def _absent(look: Look) -> str:
    return f"no {look.colour} {look.shape if look.number == 1 else plural(look.shape)}"


def _part_of(scene: Scene, draws: Draws, keep: int) -> str:
    items = []
    for thing in draws.shuffled(scene.things):
        if not draws.chance(keep):
            continue
        words = [word for word in ADJECTIVES if draws.chance(keep)]
        if thing.texture == "plain" and draws.chance(70):
            words = [word for word in words if word != "texture"]
        cell = thing.cells[0] if len(thing.cells) == 1 and draws.chance(keep // 3) else None
        items.append(noun_phrase(thing.look, words, cell, counted=draws.chance(15)))
    if len(items) > 1 and draws.chance(30):
        items[-1] = f"also {items[-1]}"
    absent = []
    if draws.chance(keep // 4):
        missing = [shape for shape in SHAPES if all(thing.shape != shape for thing in scene.things)]
        absent.append(f"no {draws.choice(missing)}")
    background = scene.background if draws.chance(keep) or not items else None
    view = scene.viewpoint if draws.chance(15 if scene.viewpoint == "straight" else keep) else None
    return _sentence(items, background, view, absent=absent, listed=draws.chance(20))


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _sentence(
    items: Sequence[str],
    background: str | None,
    view: str | None,
    *,
    absent: Sequence[str] = (),
    listed: bool = False,
) -> str:
    """Phrases joined to a caption; `listed` says "a star and a sandy background", not "a star on a ..."."""
    parts = list(items)
    ground = None if background is None else f"{_article(background)} {background} background"
    if ground is not None and (listed or absent or not parts):
        parts.append(ground)  # "no star on a sandy background" would say something else
        ground = None
    parts += absent
    text = " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
    text += f" on {ground}" if ground else ""
    said = VIEWS.get(view or "")
    return ", ".join(filter(None, (text, said)))


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
