"""Queries: references, what is asked of each, and the pictures that make the questions worth asking.

A family is made around one reference. Three questions are asked of it, as CIRR asks several of one image,
each with a target that one to three changes lead to, further positives (the goal laid out anew) and hard
negatives (a change left out, a change too many, the caption ignored). Bystanders are one change away from the
reference, so that likeness to it is not enough. Which pictures of the whole gallery are positives and hard
negatives is decided afterwards and by rule (`cir_datasets.shapes.splits`), not by what they were made for.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from cir_datasets.errors import RecordError
from cir_datasets.shapes.captions import relative_caption
from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.edits import altered, random_scene, rearranged, retaken
from cir_datasets.shapes.merging import is_rival, merge
from cir_datasets.shapes.world import Change, Goal, Look, Meaning, Scene

MEANING_KINDS = (
    ("colour", 16),
    ("shape", 14),
    ("size", 10),
    ("texture", 12),
    ("cardinality", 12),
    ("addition", 12),
    ("negation", 9),
    ("background", 14),
)
"""Kinds of change that alter a scene's meaning, with their weights."""
_ALL_KINDS = (*MEANING_KINDS, ("position", 6), ("viewpoint", 9))
_CHANGES = ((1, 40), (2, 35), (3, 25))
_MORE_POSITIVES = ((0, 15), (1, 30), (2, 30), (3, 15), (4, 10))
_NEGATIVES = 5
_BYSTANDERS = 4
QUESTIONS = 3
"""Queries a reference."""


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
    attempt = first_attempt
    while True:
        found = _attempt(Draws(split, "family", index, attempt), attempt)
        if found is not None and not (avoid and any(scene.meaning in avoid for scene in found.scenes)):
            return found
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


def _attempt(draws: Draws, attempt: int) -> EditFamily | None:
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
    if not _says(caption, reference, goal):
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


def _says(caption: str, reference: Scene, goal: Goal) -> bool:
    """Whether the caption, read literally, turns the reference into the goal."""
    try:
        return goal.misses(merge(reference, caption)) == 0
    except RecordError:
        return False


def _negatives(
    reference: Scene, changes: tuple[Change, ...], target: Scene, goal: Goal, draws: Draws
) -> list[Scene]:
    """Scenes that are easily taken for the goal: the caption ignored, a change left out, one too many."""
    ignored = retaken(reference, draws) if draws.chance(50) else rearranged(reference, draws)
    found = [ignored] if goal.misses(ignored) else []
    for left_out in changes if len(changes) > 1 else ():
        rest = relative_caption(change for change in changes if change is not left_out)
        try:
            partial = merge(reference, rest)
        except RecordError:
            continue  # without this change the others make no scene
        if goal.misses(partial) == 1:
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
