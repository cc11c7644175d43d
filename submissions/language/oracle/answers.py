"""What the oracle answers to questions about pictures: from the scene graphs behind them.

Of a picture it is given the scene. Of words it reads what a model would read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cir_datasets.errors import MissingImagesError, RecordError
from cir_datasets.shapes import (
    SPLITS,
    Draws,
    Scene,
    changes,
    describe,
    difference,
    distance,
    merge,
    scene,
    split,
)
from cir_datasets.shapes.edits import altered
from cir_datasets.shapes.language import is_rival, relative_caption
from cir_datasets.shapes.layout import SCENE_TEXT, scene_of_text
from cir_datasets.shapes.queries import MEANING_KINDS, aspects
from cir_datasets.shapes.world import Change
from cir_metrics.errors import UnknownNameError
from submissions.language.forms import NOTHING_LEFT
from submissions.language.oracle.reading import apart, kind_of, merged, phrases, read_caption, said, scene_of
from submissions.language.protocol import Item, Picture

_LESS_VISIBLE = {"background": 0, "viewpoint": 2, "negation": 3}
"""Order of changes: the ground, which is most of a picture, then its things, the view, and what is to go."""
_BEST = 5
"""The best of a session's scales."""
_ANY = 1000
"""Words where no number is said."""
_ATTEMPTS = 200
"""Draws until a scene has no room for what is wanted."""
_MEANING = tuple(kind for kind, _ in MEANING_KINDS)
_GALLERY_ID = re.compile(r"([a-z]+)-\d{6}")
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
    if aspect != "complex":
        found = tuple(change for change in found if aspect in aspects([change]))
    if not found:
        return describe(second) if aspect == "complex" else NOTHING_LEFT
    key = f"{describe(first)}|{describe(second)}|{item.words.get('said', '')}"
    return _in_words(found, int(item.words.get("words", _ANY)), key)


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


def _pair(item: Item) -> dict[str, str]:
    """The fewest changes from the first picture to the second that do not lead to one of the others, too."""
    first, second, *others = (scene(picture.id) for picture in item.pictures)
    found = changes(first, second, viewpoint=True)
    elsewhere = [set(changes(first, other, viewpoint=True)) for other in others]
    for number in range(1, len(found) + 1):
        for some in itertools.combinations(found, number):
            if not any(set(some) <= led for led in elsewhere):
                return {"instruction": relative_caption(some)}
    return {"instruction": relative_caption(found) if found else describe(second)}


def _reverse(item: Item) -> dict[str, str]:
    """What leads back from what a change makes of a picture."""
    (reference,) = _scenes(item, 1)
    before = describe(reference)
    after = said(merged(read_caption(before), read_caption(item.words["change"])))
    return {"instruction": apart((after, before)) or before}


def _candidate(item: Item) -> dict[str, str]:
    """All that the second picture has and the first one lacks."""
    first, second = _scenes(item, 2)
    return {"instruction": relative_caption(changes(first, second, viewpoint=True)) or describe(second)}


def _caption(item: Item) -> dict[str, str]:
    """What the picture shows."""
    (only,) = _scenes(item, 1)
    return {"caption": describe(only)}


def _scenes(item: Item, number: int) -> list[Scene]:
    if len(item.pictures) != number:
        raise RecordError(
            f"the question has {len(item.pictures)} pictures, and needs {number}. Fix: give it as many."
        )
    return [scene_behind(picture) for picture in item.pictures]


def scene_behind(picture: Picture) -> Scene:
    """The scene of a picture of shapes by its id, or the one that is written in a drawn picture's file.

    Raises:
        UnknownNameError: it is neither.
        RecordError: what the file holds is not a scene.
    """
    try:
        return scene(picture.id)
    except UnknownNameError:
        try:
            text = picture.open().info.get(SCENE_TEXT)
        except MissingImagesError:
            text = None
        if not isinstance(text, str):
            raise
        return scene_of_text(text)


def mistaken(question: str, picture: Picture, seed: int) -> Iterator[Picture]:
    """Other pictures of shapes, drawn by question and seed: what an oracle with noise may see instead."""
    found = _GALLERY_ID.fullmatch(picture.id)
    name = found[1] if found is not None and found[1] in SPLITS else "val"
    draws, size = Draws("mistaken", seed, question), len(split(name).scenes)
    for _ in range(_ATTEMPTS):
        other = f"{name}-{draws.below(size):06}"
        if other != picture.id:
            yield Picture(other, picture.open)


def _edit(*wanted: str) -> Callable[[Item], dict[str, str]]:
    """One change of one of these kinds to what a caption describes; without kinds two or three of any."""
    return lambda item: _edited(item.words["caption"], wanted)


def _edited(caption: str, wanted: Sequence[str]) -> dict[str, str]:
    before = scene_of(caption)
    for attempt in range(_ATTEMPTS):
        draws = Draws("edit", *wanted, describe(before), attempt)
        after, steps = before, 1 if wanted else 2 + draws.below(2)
        for _ in range(steps):
            step = altered(after, draws.choice(wanted or _MEANING), draws)
            after = after if step is None else step[0]
        change = difference(before, after)
        if len(changes(before, after)) == steps and _makes(change, before, after):
            return {"relative_caption": change, "target_caption": describe(after)}
    raise RecordError(
        f"caption {caption!r}: its scene has no room for {' or '.join(wanted) or 'several changes'}. "
        "Fix: leave it out for this aspect."
    )


def _makes(change: str, before: Scene, after: Scene) -> bool:
    """Whether a reader who takes the words literally gets from one scene to the other."""
    try:
        return merge(before, change).meaning == after.meaning and not is_rival(before, before, change, after)
    except RecordError:
        return False


def _hard_negative(item: Item) -> dict[str, str]:
    """A scene that is easily taken for the target: close to it, or the request is true of it alone."""
    reference, target = (scene_of(item.words[name]) for name in ("reference", "target"))
    change, like = item.words["change"], item.words["like"]
    for attempt in range(_ATTEMPTS):
        draws = Draws("hard negative", describe(reference), describe(target), like, attempt)
        try:
            if like == "the target":
                step = altered(target, draws.choice(_MEANING), draws)
                found = None if step is None else step[0]
            else:
                step = altered(reference, draws.choice(_MEANING), draws)
                found = None if step is None else merge(step[0], change)
        except RecordError:
            continue
        if found is None or found.meaning in (reference.meaning, target.meaning):
            continue
        if not is_rival(found, reference, change, target):
            return {"negative_caption": describe(found)}
    raise RecordError(
        f"caption {item.words['target']!r}: no scene beside it is near and wrong. Fix: leave it out."
    )


ANSWERS: Mapping[str, Callable[[Item], Mapping[str, Any]]] = {
    "caption_clothes": _caption,
    "feedback": _feedback,
    "feedback_pictures": _feedback_pictures,
    "next_difference": _next_difference,
    "frame": _frame,
    "next_frame": _next_frame,
    "frame_change": _frame_change,
    "summary": _summary,
    "pair": _pair,
    "session": _session,
    "reverse": _reverse,
    "candidate": _candidate,
    "edit_addition": _edit("addition"),
    "edit_negation": _edit("negation"),
    "edit_change": _edit("colour", "shape", "size", "texture"),
    "edit_background": _edit("background"),
    "edit_complex": _edit(),
    "hard_negative": _hard_negative,
}
"""What fills a form, by the name of the prompt."""
