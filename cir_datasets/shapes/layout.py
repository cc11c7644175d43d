"""From captions to scenes: what a caption says, laid out by a seed, and a scene as text inside its picture.

A generator of pictures needs the way back from words. Scenes of one seed agree: what two captions have in
common stands in the same place, and the background's pattern is the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from cir_datasets.errors import RecordError
from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.language import Mention, read
from cir_datasets.shapes.world import CELLS, Scene, Thing

SCENE_TEXT = "scene"
"""Under what name a picture's file holds its scene."""
_GRAINS = 1 << 32


def scenes_of(captions: Sequence[str], seed: int) -> list[Scene]:
    """Scenes of which the captions are true, each complete, all laid out by one seed.

    Args:
        captions: in the language of shapes; each says size and colour of every thing, and a background.
        seed: decides cells that no caption names, and the grain.

    Raises:
        RecordError: a caption is not in that language, leaves something out, or allows no scene.

    Example:
        >>> first, second = scenes_of(["a small red circle on a sandy background",
        ...                            "a small red circle and a large blue star on a sandy background"], 7)
        >>> first.things[0] == second.things[0], first.grain == second.grain
        (True, True)
    """
    draws = Draws("layout", seed)
    order, grain = draws.shuffled(range(CELLS)), draws.below(_GRAINS)
    made: list[Scene] = []
    for caption in captions:
        reading = read(caption.strip().rstrip(".").lower())
        mentions = [mention for mention in reading.mentions if mention.number]
        for mention in mentions:
            for word in ("colour", "size"):
                if getattr(mention, word) is None:
                    raise RecordError(
                        f"caption {caption!r}: it does not say the {word} of the {mention.shape}. "
                        "Fix: use complete captions."
                    )
        if reading.background is None:
            raise RecordError(
                f"caption {caption!r}: it does not say the background. Fix: use complete captions."
            )
        cells = _cells(mentions, [thing for scene in made for thing in scene.things], order)
        things = tuple(
            Thing(each.shape, str(each.colour), str(each.size), each.texture or "plain", cells[place])
            for place, each in enumerate(mentions)
        )
        made.append(Scene(things, reading.background, reading.viewpoint or "straight", grain))
    return made


def _cells(
    mentions: Sequence[Mention], earlier: Sequence[Thing], order: Sequence[int]
) -> dict[int, tuple[int, ...]]:
    """The cells of each mention: where it stood in an earlier scene, else where nothing has stood."""
    found: dict[int, tuple[int, ...]] = {
        place: (each.cell,) for place, each in enumerate(mentions) if each.cell is not None
    }
    taken = {cell for cells in found.values() for cell in cells}
    for thing, place in _partners(mentions, earlier):
        if place not in found and not taken.intersection(thing.cells):
            found[place] = thing.cells[: mentions[place].number]
            taken.update(found[place])
    stood = {cell for thing in earlier for cell in thing.cells}
    for place, each in enumerate(mentions):
        start = found.get(place, ())
        free = [cell for cell in order if cell not in taken]
        free.sort(key=lambda cell: cell in stood)
        found[place] = (*start, *free[: each.number - len(start)])
        taken.update(found[place])
    return found


def _partners(mentions: Sequence[Mention], earlier: Sequence[Thing]) -> Iterator[tuple[Thing, int]]:
    """Earlier things and the mentions that may be them: first the same, then those of one shape or colour."""
    pairs = [(thing, place) for thing in earlier for place in range(len(mentions))]
    for shape, colour in ((True, True), (True, False), (False, True)):
        for thing, place in pairs:
            each = mentions[place]
            if (thing.shape == each.shape) == shape and (thing.colour == each.colour) == colour:
                yield thing, place


def scene_text(scene: Scene) -> str:
    """A scene as one line of JSON, for the text of its picture's file.

    Example:
        >>> scene = Scene((Thing("circle", "red", "small", "plain", (4,)),), "sandy")
        >>> scene_of_text(scene_text(scene)) == scene
        True
    """
    things = [
        [thing.shape, thing.colour, thing.size, thing.texture, list(thing.cells)] for thing in scene.things
    ]
    return json.dumps([things, scene.background, scene.viewpoint, scene.grain], separators=(",", ":"))


def scene_of_text(text: str) -> Scene:
    """The scene of `scene_text`.

    Raises:
        RecordError: it is not such a line.
    """
    try:
        things, background, viewpoint, grain = json.loads(text)
        return Scene(
            tuple(
                Thing(shape, colour, size, texture, tuple(cells))
                for shape, colour, size, texture, cells in things
            ),
            background,
            viewpoint,
            grain,
        )
    except (ValueError, TypeError) as error:
        raise RecordError(
            f"{text[:60]!r} is not a scene of shapes: {error}. Fix: draw the picture anew."
        ) from error
