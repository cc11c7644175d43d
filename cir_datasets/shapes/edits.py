"""Scenes made at random, and random single changes to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.world import (
    BACKGROUNDS,
    CELLS,
    COLOURS,
    LOOKS,
    MOST_OBJECTS,
    MOST_THINGS,
    SHAPES,
    SIZES,
    TEXTURES,
    VIEWPOINTS,
    Change,
    Scene,
    Thing,
)

_THING_COUNTS = ((1, 20), (2, 42), (3, 38))
_TEXTURE_WEIGHTS = tuple((texture, 46 if texture == "plain" else 18) for texture in TEXTURES)
_VIEWPOINT_WEIGHTS = tuple((view, 40 if view == "straight" else 20) for view in VIEWPOINTS)
_GRAINS = 1 << 32
_OF_SCENES = {"background": BACKGROUNDS, "viewpoint": VIEWPOINTS}


def random_scene(draws: Draws, *, fewest_things: int = 1) -> Scene:
    """A scene at random: one to four objects, any background and viewpoint.

    Example:
        >>> len(random_scene(Draws("example"), fewest_things=3).things)
        3
    """
    n_things = max(fewest_things, draws.weighted(_THING_COUNTS))
    counts = [1] * n_things
    while sum(counts) < MOST_OBJECTS and draws.chance(42):
        counts[draws.below(n_things)] += 1
    cells = iter(draws.sample(range(CELLS), sum(counts)))
    looks = zip(draws.sample(SHAPES, n_things), draws.sample(COLOURS, n_things), counts, strict=True)
    things = tuple(
        Thing(
            shape=shape,
            colour=colour,
            size=draws.choice(SIZES),
            texture=draws.weighted(_TEXTURE_WEIGHTS),
            cells=tuple(next(cells) for _ in range(count)),
        )
        for shape, colour, count in looks
    )
    return Scene(things, draws.choice(BACKGROUNDS), draws.weighted(_VIEWPOINT_WEIGHTS), draws.below(_GRAINS))


def retaken(scene: Scene, draws: Draws) -> Scene:
    """The same scene photographed again: layout and viewpoint stay, only the grain is new."""
    return replace(scene, grain=draws.below(_GRAINS))


def rearranged(
    scene: Scene, draws: Draws, *, viewpoint: str | None = None, places: tuple[tuple[str, int], ...] = ()
) -> Scene:
    """A scene of the same meaning, laid out anew and seen from anywhere.

    Args:
        scene: any scene.
        draws: decides layout, viewpoint and grain.
        viewpoint: the viewpoint to keep to, or None for any.
        places: (shape, cell) pairs to keep to.
    """
    fixed = dict(places)
    rest = [cell for cell in range(CELLS) if cell not in fixed.values()]
    objects = sum(len(thing.cells) for thing in scene.things)
    cells = iter(draws.sample(rest, objects))
    things = tuple(
        replace(
            thing,
            cells=(fixed[thing.shape],) if thing.shape in fixed else tuple(next(cells) for _ in thing.cells),
        )
        for thing in scene.things
    )
    view = viewpoint or draws.weighted(_VIEWPOINT_WEIGHTS)
    return Scene(things, scene.background, view, draws.below(_GRAINS))


def altered(
    scene: Scene, kind: str, draws: Draws, *, but_not: frozenset[str] = frozenset()
) -> tuple[Scene, Change] | None:
    """The scene after one random change, in its old layout, and the change.

    Args:
        scene: where the change starts.
        kind: such as `colour`, `addition` or `viewpoint`.
        draws: decides which change of that kind.
        but_not: shapes of things to leave alone.

    Returns:
        None where the scene allows no change of that kind.
    """
    grain = draws.below(_GRAINS)
    if kind in _OF_SCENES:
        before = getattr(scene, kind)
        new = draws.choice([other for other in _OF_SCENES[kind] if other != before])
        values: dict[str, Any] = {kind: new, "grain": grain}
        return replace(scene, **values), Change(kind, before, new)
    if kind == "addition":
        extra = _extra(scene, draws)
        if extra is None:
            return None
        return replace(scene, things=(*scene.things, extra), grain=grain), Change(kind, None, extra.look)
    thing = _pick(scene, kind, draws, but_not)
    if thing is None:
        return None
    if kind == "negation":
        things = tuple(other for other in scene.things if other is not thing)
        return replace(scene, things=things, grain=grain), Change(kind, thing.look, None)
    after = _other(scene, thing, kind, draws)
    things = tuple(after if other is thing else other for other in scene.things)
    cell = after.cells[0] if kind == "position" else None
    return replace(scene, things=things, grain=grain), Change(kind, thing.look, after.look, cell)


def _free(scene: Scene) -> list[int]:
    taken = {cell for thing in scene.things for cell in thing.cells}
    return [cell for cell in range(CELLS) if cell not in taken]


def _spare(scene: Scene) -> int:
    return MOST_OBJECTS - sum(len(thing.cells) for thing in scene.things)


def _extra(scene: Scene, draws: Draws) -> Thing | None:
    if len(scene.things) == MOST_THINGS or not _spare(scene):
        return None
    count = 1 + (_spare(scene) > 1 and draws.chance(25))
    return Thing(
        shape=draws.choice(_unused(scene.things, "shape")),
        colour=draws.choice(_unused(scene.things, "colour")),
        size=draws.choice(SIZES),
        texture=draws.weighted(_TEXTURE_WEIGHTS),
        cells=tuple(draws.sample(_free(scene), count)),
    )


def _pick(scene: Scene, kind: str, draws: Draws, but_not: frozenset[str]) -> Thing | None:
    """A thing that a change of that kind can happen to."""
    things = [thing for thing in scene.things if thing.shape not in but_not]
    if kind == "negation" and len(scene.things) == 1:
        return None
    if kind == "position":
        things = [thing for thing in things if len(thing.cells) == 1]
    if kind == "cardinality" and not _spare(scene):
        things = [thing for thing in things if len(thing.cells) > 1]
    return draws.choice(things) if things else None


def _other(scene: Scene, thing: Thing, kind: str, draws: Draws) -> Thing:
    """The thing after a change of that kind."""
    if kind == "position":
        return replace(thing, cells=(draws.choice(_free(scene)),))
    if kind == "cardinality":
        most = len(thing.cells) + _spare(scene)
        count = draws.choice([n for n in range(1, most + 1) if n != len(thing.cells)])
        cells = (*thing.cells, *draws.shuffled(_free(scene)))[:count]
        return replace(thing, cells=cells)
    # No two things of a scene have one shape or colour.
    others = scene.things if kind in ("shape", "colour") else (thing,)
    values: dict[str, Any] = {kind: draws.choice(_unused(others, kind))}
    return replace(thing, **values)


def _unused(things: Sequence[Thing], kind: str) -> list[str]:
    """The shapes, colours, sizes or textures that no thing has."""
    return [value for value in LOOKS[kind] if all(getattr(thing, kind) != value for thing in things)]
