"""The language of shapes: what is said of a scene, and of a target seen from a reference.

Relative captions describe what the target has ("a blue star and a sandy background"), as most captions of
composed image retrieval do, in the words that descriptions of scenes use too. `cir_datasets.shapes.merging`
reads them back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.world import SHAPES, Change, Look, Scene, changes

NUMBERS = ("no", "one", "two", "three", "four")
PLACES = (
    "at the top left",
    "at the top",
    "at the top right",
    "on the left",
    "in the middle",
    "on the right",
    "at the bottom left",
    "at the bottom",
    "at the bottom right",
)
"""How each cell of the grid is called."""
VIEWS = {
    "straight": "seen straight on",
    "close": "seen from up close",
    "far": "seen from far away",
    "tilted": "seen at a tilt",
}
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
