"""Captions in the language of shapes, read, changed and said again: what the oracle knows of words."""

from __future__ import annotations

from collections.abc import Sequence

from cir_datasets.shapes import Scene, read
from cir_datasets.shapes import difference as describe_difference
from cir_datasets.shapes.language import ADJECTIVES, VIEWS, Mention, Reading, noun_phrase
from cir_datasets.shapes.layout import scenes_of
from cir_datasets.shapes.world import Look


def read_caption(caption: str) -> Reading:
    """What a caption says, a capital at its start and a full stop at its end aside."""
    return read(caption.strip().rstrip(".").lower())


def merged(caption: Reading, change: Reading) -> Reading:
    """What a caption says once a change is true."""
    absent = [mention for mention in change.mentions if mention.number == 0]
    left = [
        thing
        for thing in caption.mentions
        if thing.number and not any(_is_meant(thing, mention) for mention in absent)
    ]
    things = list(left)
    for mention in change.mentions:
        if mention.number == 0:
            continue
        place = None if mention.added else _place(left, mention)
        if place is None:
            things.append(mention._replace(added=False))
        else:
            things[place] = _altered(things[place], mention)
    return Reading(
        tuple(things), change.background or caption.background, change.viewpoint or caption.viewpoint
    )


def _is_meant(thing: Mention, mention: Mention) -> bool:
    return thing.shape == mention.shape and mention.colour in (None, thing.colour)


def _place(things: Sequence[Mention], mention: Mention) -> int | None:
    """Of the thing that is meant: the one of that shape, else the one of that colour."""
    shapes = [thing.shape for thing in things]
    if mention.shape in shapes:
        return shapes.index(mention.shape)
    colours = [thing.colour for thing in things]
    return colours.index(mention.colour) if mention.colour in colours and mention.colour else None


def _altered(thing: Mention, mention: Mention) -> Mention:
    cell = thing.cell if mention.cell is None else mention.cell
    return Mention(
        number=mention.number,
        size=mention.size or thing.size,
        texture=mention.texture or thing.texture,
        colour=mention.colour or thing.colour,
        shape=mention.shape,
        cell=cell if mention.number == 1 else None,
        added=False,
    )


def said(reading: Reading) -> str:
    """A reading in words again, as `describe` says complete captions."""
    items = []
    for mention in reading.mentions:
        look = Look(
            mention.shape, mention.colour or "", mention.size or "", mention.texture or "", mention.number
        )
        words = [word for word in ADJECTIVES if getattr(look, word) not in ("", "plain")]
        items.append(noun_phrase(look, words, mention.cell))
    text = " and ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)
    if reading.background is not None:
        article = "an" if reading.background[0] in "aeiou" else "a"
        ground = f"{article} {reading.background} background"
        text = f"{text} on {ground}" if text else ground
    view = None if reading.viewpoint in (None, "straight") else VIEWS[str(reading.viewpoint)]
    return ", ".join(filter(None, (text, view)))


def apart(pair: tuple[str, str]) -> str:
    """What the second caption's scene has that the first one's lacks."""
    first, second = (scene_of(caption) for caption in pair)
    return describe_difference(first, second, viewpoint=True)


def scene_of(caption: str) -> Scene:
    """A scene of which the caption is true; things whose place is not named stand where there is room."""
    return scenes_of([caption], 0)[0]


def phrases(reading: Reading) -> list[str]:
    """What a caption says, thing by thing, then background and viewpoint.

    Example:
        >>> phrases(read_caption("a blue star on a snowy background and no circle"))
        ['a blue star', 'no circle', 'a snowy background']
    """
    found = []
    for mention in reading.mentions:
        look = Look(
            mention.shape, mention.colour or "", mention.size or "", mention.texture or "", mention.number
        )
        if mention.number == 0:
            look = look._replace(number=1)
        words = [word for word in ADJECTIVES if getattr(look, word)]
        phrase = noun_phrase(look, words, mention.cell, counted=mention.counted)
        if mention.number == 0:
            phrase = "no " + phrase.partition(" ")[2]
        found.append(f"also {phrase}" if mention.added else phrase)
    if reading.background is not None:
        article = "an" if reading.background[0] in "aeiou" else "a"
        found.append(f"{article} {reading.background} background")
    if reading.viewpoint is not None:
        found.append(VIEWS[reading.viewpoint])
    return found


def kind_of(change: Reading) -> str:
    """Which of ZeroSight's categories a relative caption mainly asks for, the rarest kind of words first.

    Example:
        >>> kind_of(read_caption("also a small red circle on a snowy background"))
        'addition'
    """
    if any(mention.added for mention in change.mentions):
        return "addition"
    if any(mention.number == 0 for mention in change.mentions):
        return "subtraction"
    if change.background is not None:
        return "background"
    if change.viewpoint is not None:
        return "viewpoint"
    looks = any(mention.colour or mention.texture for mention in change.mentions)
    return "attribute" if looks else "relative"
