"""Sessions: several turns that lead from a vague first request to one meaning.

A session starts some changes away from its target. At each turn the user sees a reference and says some of
what the target has and the reference lacks: one thing at first, in the end all that is left. The next
reference has what was said, so that each comes nearer to the target; all of them are in the gallery.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from cir_datasets.errors import RecordError
from cir_datasets.shapes.captions import relative_caption
from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.edits import altered, random_scene, rearranged, retaken
from cir_datasets.shapes.families import MEANING_KINDS
from cir_datasets.shapes.merging import is_rival, is_true, merge
from cir_datasets.shapes.world import Change, Look, Meaning, Scene, changes, distance

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
    """One session of the given number of turns; arguments as for `families.family`."""
    attempt = first_attempt
    while True:
        found = _attempt(Draws(split, "journey", index, attempt), turns, attempt)
        if found is not None and not (avoid and any(scene.meaning in avoid for scene in found.scenes)):
            return found
        attempt += 1


def _attempt(draws: Draws, turns: int, attempt: int) -> Journey | None:
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
        if not is_true(caption, target) or not _brings(caption, reference, target, left - count):
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


def _brings(caption: str, reference: Scene, target: Scene, left: int) -> bool:
    """Whether the caption, read literally, leaves just `left` changes to be made."""
    try:
        return distance(merge(reference, caption).meaning, target.meaning) == left
    except RecordError:
        return False
