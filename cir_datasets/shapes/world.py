"""The world of shapes: what a scene is, what it means, and how two scenes differ.

A scene holds one to four objects on a grid of three by three. Equal objects form a `Thing`; no two things of
a scene share shape or colour, so that "a blue star" names at most one of them. What a caption takes for
granted is a scene's `Meaning`: its things' looks and its background. Position and viewpoint count only where
a caption names them (`Goal`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cir_datasets.common.yaml import package_yaml
from cir_datasets.errors import RecordError

WORLD: Mapping[str, Any] = package_yaml("cir_datasets", "shapes/world.yaml")
"""What scenes are made of, as data."""

SHAPES: tuple[str, ...] = tuple(WORLD["shapes"])
COLOURS: tuple[str, ...] = tuple(WORLD["colours"])
SIZES: tuple[str, ...] = tuple(WORLD["sizes"])
TEXTURES: tuple[str, ...] = tuple(WORLD["textures"])
BACKGROUNDS: tuple[str, ...] = tuple(WORLD["backgrounds"])
VIEWPOINTS: tuple[str, ...] = tuple(WORLD["viewpoints"])
LOOKS = {"shape": SHAPES, "colour": COLOURS, "size": SIZES, "texture": TEXTURES}
CELLS = 9
"""Cells of the grid, numbered row by row from the top left."""
MOST_OBJECTS = 4
MOST_THINGS = 3

ATTRIBUTES = ("shape", "colour", "size", "texture", "number")
"""Attributes of a look, in the order of its fields."""


class Look(NamedTuple):
    """What can be said of a thing wherever it stands."""

    shape: str
    colour: str
    size: str
    texture: str
    number: int


class Meaning(NamedTuple):
    """What a scene shows, whatever its layout and viewpoint; scenes of equal meaning are interchangeable."""

    looks: tuple[Look, ...]
    """Sorted."""
    background: str


@dataclass(frozen=True, slots=True)
class Thing:
    """Equal objects: one look, one cell each."""

    shape: str
    colour: str
    size: str
    texture: str
    cells: tuple[int, ...]

    @property
    def look(self) -> Look:
        """The thing without its place."""
        return Look(self.shape, self.colour, self.size, self.texture, len(self.cells))


@dataclass(frozen=True, slots=True)
class Scene:
    """A scene graph; `cir_datasets.shapes.pixels` draws it.

    Args:
        things: one to three, no two of the same shape or colour, one to four objects in all.
        background: one of `BACKGROUNDS`.
        viewpoint: one of `VIEWPOINTS`.
        grain: decides what no caption speaks of: small shifts of the objects and of the background's pattern.

    Raises:
        RecordError: the scene breaks a rule of the world; the message names it.
    """

    things: tuple[Thing, ...]
    background: str
    viewpoint: str = "straight"
    grain: int = 0

    def __post_init__(self) -> None:
        """Check the rules of the world."""
        for kind, value, known in (
            ("background", self.background, BACKGROUNDS),
            ("viewpoint", self.viewpoint, VIEWPOINTS),
            *((kind, getattr(thing, kind), known) for thing in self.things for kind, known in LOOKS.items()),
        ):
            if value not in known:
                raise RecordError(
                    f"scene: {kind} {value!r} does not exist. Fix: use one of {', '.join(known)}."
                )
        problem = self._problem()
        if problem:
            raise RecordError(f"scene of {[tuple(thing.look) for thing in self.things]}: {problem}")

    def _problem(self) -> str | None:
        cells = [cell for thing in self.things for cell in thing.cells]
        if not 1 <= len(self.things) <= MOST_THINGS or not all(thing.cells for thing in self.things):
            return f"it has {len(self.things)} things. Fix: one to {MOST_THINGS}, each in at least one cell."
        if len(cells) > MOST_OBJECTS:
            return f"it has {len(cells)} objects. Fix: at most {MOST_OBJECTS}."
        if len(set(cells)) < len(cells) or not all(0 <= cell < CELLS for cell in cells):
            return f"its cells are {cells}. Fix: different cells of 0..{CELLS - 1}."
        if len({thing.shape for thing in self.things}) < len(self.things):
            return "two things have one shape. Fix: give each thing a shape of its own."
        if len({thing.colour for thing in self.things}) < len(self.things):
            return "two things have one colour. Fix: give each thing a colour of its own."
        return None

    @property
    def meaning(self) -> Meaning:
        """What the scene shows, whatever its layout and viewpoint."""
        return Meaning(tuple(sorted(thing.look for thing in self.things)), self.background)

    def cell_of(self, shape: str) -> int | None:
        """The cell of the thing of that shape, or None where there is none or it stands in several."""
        for thing in self.things:
            if thing.shape == shape and len(thing.cells) == 1:
                return thing.cells[0]
        return None


class Change(NamedTuple):
    """One difference from a reference to a target.

    `before` and `after` are looks (None where a thing is added or removed), or for `background` and
    `viewpoint` their names. `cell` is the target's cell of a `position` change.
    """

    kind: str
    before: Look | str | None
    after: Look | str | None
    cell: int | None = None


class Goal(NamedTuple):
    """What a query asks for: a meaning, and viewpoint and places only where the caption names them."""

    meaning: Meaning
    viewpoint: str | None = None
    places: tuple[tuple[str, int], ...] = ()
    """(shape, cell) pairs."""

    def misses(self, scene: Scene) -> int:
        """In how many points the scene differs from what is asked; 0 for a positive.

        Example:
            >>> dot = Thing("circle", "red", "small", "plain", (4,))
            >>> goal = Goal(Scene((dot,), "sandy").meaning, viewpoint="close")
            >>> goal.misses(Scene((dot,), "snowy"))
            2
        """
        return distance(scene.meaning, self.meaning) + self.unnamed_misses(scene)

    def unnamed_misses(self, scene: Scene) -> int:
        """In how many of the named viewpoint and places the scene differs."""
        wrong_view = self.viewpoint is not None and scene.viewpoint != self.viewpoint
        return wrong_view + sum(scene.cell_of(shape) != cell for shape, cell in self.places)


def distance(first: Meaning, second: Meaning) -> int:
    """Smallest number of changes that turn one meaning into the other.

    A change alters one attribute of one thing, adds or removes a thing, or changes the background. A thing
    that would change both shape and colour is another thing: one removed, one added.

    Example:
        >>> red = Look("circle", "red", "small", "plain", 1)
        >>> distance(Meaning((red,), "sandy"), Meaning((red._replace(colour="blue", number=2),), "snowy"))
        3
    """
    return _match(first.looks, second.looks)[0] + (first.background != second.background)


def changes(reference: Scene, target: Scene, *, viewpoint: bool = False) -> tuple[Change, ...]:
    """The fewest changes from a reference to a target, in the order of the target's things.

    Args:
        reference: where one starts.
        target: where one wants to be.
        viewpoint: whether a different viewpoint counts. Positions never do.

    Returns:
        As many changes as `distance` counts (and one more for the viewpoint), none for equal meanings.

    Example:
        >>> red = Thing("circle", "red", "small", "plain", (4,))
        >>> first, second = Scene((red,), "sandy"), Scene((red,), "snowy")
        >>> [change.kind for change in changes(first, second)]
        ['background']
    """
    before = tuple(thing.look for thing in reference.things)
    after = tuple(thing.look for thing in target.things)
    pairs = _match(before, after)[1]
    found: list[Change] = []
    for j, look in enumerate(after):
        i = pairs.get(j)
        if i is None:
            found.append(Change("addition", None, look))
            continue
        for attribute in ATTRIBUTES:
            if getattr(before[i], attribute) != getattr(look, attribute):
                kind = "cardinality" if attribute == "number" else attribute
                found.append(Change(kind, before[i], look))
    kept = set(pairs.values())
    found.extend(Change("negation", look, None) for i, look in enumerate(before) if i not in kept)
    if reference.background != target.background:
        found.append(Change("background", reference.background, target.background))
    if viewpoint and reference.viewpoint != target.viewpoint:
        found.append(Change("viewpoint", reference.viewpoint, target.viewpoint))
    return tuple(found)


def _match(before: tuple[Look, ...], after: tuple[Look, ...]) -> tuple[int, dict[int, int]]:
    """Cheapest pairing of two scenes' things: its cost, and for each of `after` its partner in `before`.

    Only things that share shape or colour are paired; every thing left alone costs one.
    """
    best: tuple[int, dict[int, int]] = (len(before) + len(after), {})
    partial: list[tuple[int, dict[int, int]]] = [best]
    for j, look in enumerate(after):
        for cost, pairs in list(partial):
            for i, other in enumerate(before):
                if i not in pairs.values() and (other.shape == look.shape or other.colour == look.colour):
                    differing = sum(a != b for a, b in zip(other, look, strict=True))
                    partial.append((cost - 2 + differing, {**pairs, j: i}))
    return min(partial, key=lambda pairing: pairing[0])


def one_step_away(meaning: Meaning) -> Iterable[Meaning]:
    """All meanings at distance one, save those with a thing more.

    Those with a thing more are too many to list: look for scenes that come to `meaning` by losing a thing.
    """
    looks, background = meaning
    for other in BACKGROUNDS:
        if other != background:
            yield Meaning(looks, other)
    for i, look in enumerate(looks):
        rest = looks[:i] + looks[i + 1 :]
        if rest:
            yield Meaning(rest, background)
        for variant in _variants(look):
            yield Meaning(tuple(sorted((*rest, variant))), background)


def _variants(look: Look) -> Iterable[Look]:
    """The looks that differ in one attribute."""
    known: dict[str, Iterable[Any]] = {**LOOKS, "number": range(1, MOST_OBJECTS + 1)}
    for attribute, values in known.items():
        for value in values:
            if value != getattr(look, attribute):
                yield look._replace(**{attribute: value})


def less_one(meaning: Meaning) -> Iterable[Meaning]:
    """The meanings that lack one of the things; none for a scene of a single thing."""
    looks, background = meaning
    if len(looks) > 1:
        for i in range(len(looks)):
            yield Meaning(looks[:i] + looks[i + 1 :], background)
