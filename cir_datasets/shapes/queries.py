"""What shapes asks: queries in families, and sessions that lead from a vague request to one meaning.

A family is made around one reference. Three questions are asked of it, as CIRR asks several of one image,
each with a target that one to three changes lead to, further positives (the goal laid out anew) and hard
negatives (a change left out, a change too many, the caption ignored). Bystanders are one change away from the
reference, so that likeness to it is not enough. Which pictures of the whole gallery are positives and hard
negatives is decided afterwards and by rule (`cir_datasets.shapes.gallery`), not by what they were made for.

A session starts some changes away from its target. At each turn the user sees a reference and says some of
what the target has and the reference lacks: one thing at first, in the end all that is left. The next
reference has what was said, so that each comes nearer to the target; all of them are in the gallery.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from cir_datasets.errors import RecordError
from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.edits import altered, random_scene, rearranged, retaken
from cir_datasets.shapes.language import is_rival, is_true, merge, relative_caption
from cir_datasets.shapes.world import WORLD, Change, Goal, Look, Meaning, Scene, changes, distance

MEANING_KINDS: tuple[tuple[str, int], ...] = tuple(WORLD["meaning_kinds"].items())
"""Kinds of change that alter a scene's meaning, with their weights."""
_ALL_KINDS = (*MEANING_KINDS, ("position", 6), ("viewpoint", 9))
_CHANGES = ((1, 40), (2, 35), (3, 25))
_MORE_POSITIVES = ((0, 15), (1, 30), (2, 30), (3, 15), (4, 10))
_NEGATIVES = 5
_BYSTANDERS = 4
QUESTIONS = 3
"""Queries a reference."""
_Made = TypeVar("_Made", "EditFamily", "Journey")


@dataclass(frozen=True, slots=True)
class MadeQuery:
    """One query and the pictures made for it; its subset is reference, target and four `distractors`."""

    target: Scene
    caption: str
    changes: tuple[Change, ...]
    goal: Goal
    distractors: tuple[Scene, ...]
    others: tuple[Scene, ...]


@dataclass(frozen=True, slots=True)
class EditFamily:
    """A reference, what is asked of it, and the pictures around it."""

    reference: Scene
    questions: tuple[MadeQuery, ...]
    bystanders: tuple[Scene, ...]
    attempt: int
    """Which attempt this is."""

    @property
    def scenes(self) -> tuple[Scene, ...]:
        """All pictures of the family."""
        asked = [(question.target, *question.distractors, *question.others) for question in self.questions]
        return (self.reference, *(scene for scenes in asked for scene in scenes), *self.bystanders)

    @property
    def ambiguous(self) -> bool:
        """Whether some picture of the family answers as well as the target and is not a positive."""
        return any(
            is_rival(scene, self.reference, question.caption, question.target)
            for question in self.questions
            for scene in self.scenes
        )


def family(
    split: str, index: int, *, avoid: Collection[Meaning] = frozenset(), first_attempt: int = 0
) -> EditFamily:
    """The family of one reference.

    Args:
        split: part of the random draws' name.
        index: the rest of it.
        avoid: meanings that no picture of the family may have.
        first_attempt: attempts before it are passed over.

    Returns:
        The first family, over as many attempts as it takes, whose captions read literally give their goals,
        and nothing else in it as well.
    """
    return _first(lambda at: _family(Draws(split, "family", index, at), at), avoid, first_attempt)


def _first(make: Callable[[int], _Made | None], avoid: Collection[Meaning], attempt: int) -> _Made:
    """What the first attempt makes that makes something without a meaning to avoid."""
    while True:
        made = make(attempt)
        if made is not None and not (avoid and any(scene.meaning in avoid for scene in made.scenes)):
            return made
        attempt += 1


def aspects(changes: Collection[Change]) -> list[str]:
    """The semantic aspects of a query, in words of FISD and CIRCO.

    Colour, shape, size and texture are `change`; more than one change of whatever kind is also `complex`.

    Example:
        >>> aspects([Change("background", "sandy", "snowy"), Change("viewpoint", "far", "close")])
        ['background', 'viewpoint', 'complex']
    """
    kinds = [change.kind for change in changes]
    words = ["change" if kind in ("colour", "shape", "size", "texture") else kind for kind in kinds]
    return [*dict.fromkeys(words), *(["complex"] if len(kinds) > 1 else [])]


def _family(draws: Draws, attempt: int) -> EditFamily | None:
    reference = random_scene(draws)
    questions: list[MadeQuery] = []
    while len(questions) < QUESTIONS:
        question = _question(reference, draws)
        if question is None or question.goal in [other.goal for other in questions]:
            continue
        questions.append(question)
    steps = [altered(reference, draws.weighted(_ALL_KINDS), draws) for _ in range(_BYSTANDERS)]
    bystanders = tuple(step[0] for step in steps if step is not None)
    found = EditFamily(reference, tuple(questions), bystanders, attempt)
    return None if found.ambiguous else found


def _question(reference: Scene, draws: Draws) -> MadeQuery | None:
    steps = _steps(reference, draws)
    if steps is None:
        return None
    changes = tuple(change for _, change in steps)
    target = retaken(steps[-1][0], draws)
    goal = Goal(
        target.meaning,
        viewpoint=target.viewpoint if any(change.kind == "viewpoint" for change in changes) else None,
        places=tuple(
            (change.after.shape, change.cell)
            for change in changes
            if isinstance(change.after, Look) and change.cell is not None
        ),
    )
    if goal.misses(reference) != len(changes):
        return None
    caption = relative_caption(changes, draws)
    literal = _read_literally(caption, reference)
    if literal is None or goal.misses(literal):
        return None
    positives = [
        rearranged(target, draws, viewpoint=goal.viewpoint, places=goal.places)
        for _ in range(draws.weighted(_MORE_POSITIVES))
    ]
    negatives = _negatives(reference, changes, target, goal, draws)
    distractors = draws.sample(negatives, 4)
    others = [scene for scene in negatives if scene not in distractors]
    return MadeQuery(target, caption, changes, goal, tuple(distractors), (*positives, *others))


def _steps(reference: Scene, draws: Draws) -> list[tuple[Scene, Change]] | None:
    """Scene after scene on the way from the reference, one change each, never two of one thing."""
    wanted = draws.weighted(_CHANGES)
    scene, touched, steps = reference, frozenset[str](), list[tuple[Scene, Change]]()
    for _ in range(wanted):
        step = altered(scene, draws.weighted(_ALL_KINDS), draws, but_not=touched)
        if step is None or step[1].kind in [
            change.kind for _, change in steps if change.after.__class__ is str
        ]:
            return None
        steps.append(step)
        scene = step[0]
        touched |= {look.shape for look in step[1][1:3] if isinstance(look, Look)}
    return steps


def _read_literally(caption: str, reference: Scene) -> Scene | None:
    """What the caption makes of the reference; None where that is no scene."""
    try:
        return merge(reference, caption)
    except RecordError:
        return None


def _negatives(
    reference: Scene, changes: tuple[Change, ...], target: Scene, goal: Goal, draws: Draws
) -> list[Scene]:
    """Scenes that are easily taken for the goal: the caption ignored, a change left out, one too many."""
    ignored = retaken(reference, draws) if draws.chance(50) else rearranged(reference, draws)
    found = [ignored] if goal.misses(ignored) else []
    for left_out in changes if len(changes) > 1 else ():
        rest = relative_caption(change for change in changes if change is not left_out)
        partial = _read_literally(rest, reference)
        if partial is not None and goal.misses(partial) == 1:
            found.append(retaken(partial, draws))
    while len(found) < _NEGATIVES:
        step = altered(target, draws.weighted(_ALL_KINDS), draws)
        if step is None or goal.misses(step[0]) != 1:
            continue
        scene = step[0]
        if step[1].kind != "position" and draws.chance(25):
            scene = rearranged(scene, draws, viewpoint=scene.viewpoint, places=goal.places)
        found.append(scene)
    return found


_MORE_TRUTHS = ((0, 40), (1, 40), (2, 20))
_STRAYS = 1
_PATIENCE = 12


class JourneyStep(NamedTuple):
    """A turn: the reference that the user sees, and what they say."""

    reference: Scene
    caption: str


@dataclass(frozen=True, slots=True)
class Journey:
    """One session and the pictures made for it."""

    target: Scene
    steps: tuple[JourneyStep, ...]
    others: tuple[Scene, ...]
    attempt: int
    """Which attempt this is."""

    @property
    def scenes(self) -> tuple[Scene, ...]:
        """All pictures of the session."""
        return (self.target, *(step.reference for step in self.steps), *self.others)


def journey(
    split: str,
    index: int,
    turns: int,
    *,
    avoid: Collection[Meaning] = frozenset(),
    first_attempt: int = 0,
) -> Journey:
    """One session of the given number of turns; arguments as for `family`."""
    return _first(lambda at: _journey(Draws(split, "journey", index, at), turns, at), avoid, first_attempt)


def _journey(draws: Draws, turns: int, attempt: int) -> Journey | None:
    said = [1] * turns
    if draws.chance(50):
        said[1 + draws.below(turns - 1)] += 1
    target = random_scene(draws, fewest_things=2 if sum(said) < 4 else 3)
    away = _away(target, sum(said), draws)
    if away is None:
        return None
    steps: list[JourneyStep] = []
    left = len(away) - 1
    for turn, count in enumerate(said):
        reference, nearer = away[left], away[left - count]
        still = {_aim(change) for change in changes(nearer, target)}
        mentioned = [change for change in changes(reference, target) if _aim(change) not in still]
        caption = relative_caption(draws.shuffled(mentioned), draws if turn == turns - 1 else None)
        literal = _read_literally(caption, reference)
        if literal is None or distance(literal.meaning, target.meaning) != left - count:
            return None
        if not is_true(caption, target):
            return None
        steps.append(JourneyStep(rearranged(reference, draws) if draws.chance(50) else reference, caption))
        left -= count
    if len({step.caption for step in steps}) < turns:
        return None
    truths = [rearranged(target, draws) for _ in range(draws.weighted(_MORE_TRUTHS))]
    strays = [
        step[0] for _ in range(_STRAYS) if (step := altered(target, draws.weighted(MEANING_KINDS), draws))
    ]
    found = Journey(target, tuple(steps), (*truths, *strays), attempt)
    last = steps[-1]
    if any(is_rival(scene, last.reference, last.caption, target) for scene in found.scenes):
        return None
    return found


def _away(target: Scene, distance_wanted: int, draws: Draws) -> list[Scene] | None:
    """Scenes further and further from the target: the i-th differs in i changes, the first i among them."""
    scenes = [retaken(target, draws)]
    aims: set[tuple[str, Look | str | None]] = set()
    for _ in range(distance_wanted * _PATIENCE):
        step = altered(scenes[-1], draws.weighted(MEANING_KINDS), draws)
        if step is None:
            continue
        found = changes(step[0], target)
        if len(found) == len(scenes) and aims < {_aim(change) for change in found}:
            aims = {_aim(change) for change in found}
            scenes.append(step[0])
            if len(scenes) > distance_wanted:
                return scenes
    return None


def _aim(change: Change) -> tuple[str, Look | str | None]:
    """What a change leads to; the same from every scene that needs it."""
    return change.kind, change.before if change.after is None else change.after
