"""What the oracle answers to questions about pictures: from the scene graphs behind them.

Of a picture it is given the scene. Of words it reads what a model would read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cir_datasets.errors import RecordError
from cir_datasets.shapes import Draws, Scene, changes, describe, distance, scene
from cir_datasets.shapes.captions import relative_caption
from cir_datasets.shapes.families import aspects
from cir_datasets.shapes.world import Change
from submissions.language.oracle.reading import apart, kind_of, merged, phrases, read_caption, said, scene_of
from submissions.language.protocol import Item

_LESS_VISIBLE = {"background": 0, "viewpoint": 2, "negation": 3}
"""Order of changes: the ground, which is most of a picture, then its things, the view, and what is to go."""
_BEST = 5
"""The best of a session's scales."""
_ANY = 1000
"""Words where no number is said."""
_LONGEST = 40
"""Words of a request that still sounds like a person's."""


def _feedback(item: Item) -> dict[str, str]:
    """What leads from the first caption to the second."""
    return {"instruction": _request(scene_of(item.words["first"]), scene_of(item.words["second"]), item)}


def _feedback_pictures(item: Item) -> dict[str, str]:
    """What leads from the first picture to the second."""
    first, second = _scenes(item, 2)
    return {"instruction": _request(first, second, item)}


def _request(first: Scene, second: Scene, item: Item) -> str:
    found = changes(first, second, viewpoint=True)
    aspect = item.words.get("aspect", "complex")
    # `complex` is the aspect of several changes of any kind.
    wanted = found if aspect == "complex" else tuple(one for one in found if aspect in aspects([one]))
    if not found:
        return describe(second)
    key = f"{describe(first)}|{describe(second)}|{item.words.get('said', '')}"
    return _in_words(wanted or found, int(item.words.get("words", _ANY)), key)


def _in_words(found: Sequence[Change], most: int, key: str) -> str:
    """As many of the changes as fit into a number of words, one at least, the most visible ones first.

    Which ones of those that are alike is drawn by the key.
    """
    said: list[Change] = []
    drawn = Draws("feedback", key).shuffled(found)
    for change in sorted(drawn, key=lambda one: _LESS_VISIBLE.get(one.kind, 1)):
        if not said or len(relative_caption([*said, change]).split()) <= most:
            said.append(change)
    return relative_caption([change for change in found if change in said])


def _next_difference(item: Item) -> dict[str, str]:
    """The first change that no earlier request and no refused answer names; all where each has been named."""
    first, second = _scenes(item, 2)
    found = changes(first, second, viewpoint=True)
    if not found:
        return {"instruction": describe(second)}
    earlier = f"{item.words['history']}\n{item.words['retry']}".lower()
    unsaid = next((one for one in map(_said_alone, found) if one not in earlier), None)
    return {"instruction": unsaid or relative_caption(found)}


def _said_alone(change: Change) -> str:
    return relative_caption([change])


def _frame(item: Item) -> dict[str, int]:
    """The first frame with the most things; none where there are no things."""
    counts = [len(one.things) for one in _scenes(item, len(item.pictures))]
    most = max(counts, default=0)
    return {"choice": counts.index(most) + 1 if most else 0}


def _next_frame(item: Item) -> dict[str, int]:
    """Of the frames that mean something else than the first, the first with the most things; else none."""
    first, *others = _scenes(item, len(item.pictures))
    counts = [len(one.things) * (one.meaning != first.meaning) for one in others]
    most = max(counts, default=0)
    return {"choice": counts.index(most) + 2 if most else 1}


def _frame_change(item: Item) -> dict[str, str]:
    """All that the second picture has and the first one lacks, in words, and what kind of change that is."""
    first, second = _scenes(item, 2)
    return _sorted(relative_caption(changes(first, second, viewpoint=True)) or describe(second))


def _summary(item: Item) -> dict[str, str]:
    """What all captions say, phrase by phrase; the shortest caption where they share none."""
    captions = [line.removeprefix("- ") for line in item.words["captions"].splitlines() if line.strip()]
    readings = [read_caption(caption) for caption in captions]
    if not readings:
        raise RecordError("no captions are there to be summed up. Fix: write one a line.")
    shared = set.intersection(*(set(phrases(reading)) for reading in readings))
    words = [phrase for phrase in phrases(readings[0]) if phrase in shared]
    return _sorted(", ".join(words) or min(captions, key=lambda caption: (len(caption.split()), caption)))


def _sorted(caption: str) -> dict[str, str]:
    return {"instruction": caption, "category": kind_of(read_caption(caption))}


def _session(item: Item) -> dict[str, int]:
    """Scales out of scenes: what a session of shapes says, and whether it leads to the target."""
    *seen, target = _scenes(item, len(item.pictures))
    words = [line.strip() for line in item.words["utterances"].splitlines() if line.strip()]
    if len(words) != len(seen):
        raise RecordError(
            f"a session of {len(seen)} pictures has {len(words)} lines of words. Fix: write one line a turn."
        )
    far = [distance(one.meaning, target.meaning) for one in seen]
    scales = {
        "naturalness": _scale(sum(0 < len(line.split()) <= _LONGEST for line in words), len(words)),
        "coherence": _scale(sum(_leads_there(line, target) for line in words), len(words)),
        "progress": _scale(sum(b < a for a, b in itertools.pairwise(far)), max(1, len(far) - 1)),
        "redundancy": _scale(len(set(words)), len(words)),
    }
    if len(far) == 1:
        scales["progress"] = _BEST
    return {**scales, "overall": round(sum(scales.values()) / len(scales))}


def _scale(good: int, of: int) -> int:
    """A share as a whole number from 1 to 5."""
    return 1 + round((_BEST - 1) * good / of)


def _leads_there(words: str, target: Scene) -> bool:
    """Whether a request, taken literally, is true of the target."""
    request, whole = read_caption(words), read_caption(describe(target))
    return said(merged(whole, request)) == said(whole)


def _reverse(item: Item) -> dict[str, str]:
    """What leads back from what a change makes of a picture."""
    (reference,) = _scenes(item, 1)
    before = describe(reference)
    after = said(merged(read_caption(before), read_caption(item.words["change"])))
    return {"instruction": apart((after, before))}


def _caption(item: Item) -> dict[str, str]:
    """What the picture shows."""
    (only,) = _scenes(item, 1)
    return {"caption": describe(only)}


def _scenes(item: Item, number: int) -> list[Scene]:
    if len(item.pictures) != number:
        raise RecordError(
            f"the question has {len(item.pictures)} pictures, and needs {number}. Fix: give it as many."
        )
    return [scene(picture.id) for picture in item.pictures]


ANSWERS: Mapping[str, Callable[[Item], Mapping[str, Any]]] = {
    "caption_clothes": _caption,
    "feedback": _feedback,
    "feedback_pictures": _feedback_pictures,
    "next_difference": _next_difference,
    "frame": _frame,
    "next_frame": _next_frame,
    "frame_change": _frame_change,
    "summary": _summary,
    "session": _session,
    "reverse": _reverse,
}
"""What fills a form, by the name of the prompt."""
