"""Which pictures a caption is true of, for many captions and pictures at once.

A caption drawn for one picture is often true of others in the batch ("a large star"). They are not negatives;
the loss counts them as positives too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cir_datasets.shapes import BACKGROUNDS, COLOURS, SHAPES, SIZES, TEXTURES, VIEWPOINTS, Scene, read

Facts = NDArray[np.int8]
"""Shape (scenes, 8 shapes + 1, 5): colour, size, texture, number and cell of the thing of each shape, and in
the last row background and viewpoint. All are places in the world's lists; `NOTHING` where there is none."""

NOTHING = -1
_UNSAID = -2
_ATTRIBUTES = 5
_SETTING = len(SHAPES)


def facts_of(scenes: Sequence[Scene]) -> Facts:
    """The facts of scenes, to be compared with what captions say.

    Example:
        >>> from cir_datasets.shapes import Thing
        >>> facts_of([Scene((Thing("circle", "orange", "small", "plain", (4,)),), "sandy")])[0, 0].tolist()
        [1, 0, 0, 1, 4]
    """
    facts = np.full((len(scenes), len(SHAPES) + 1, _ATTRIBUTES), NOTHING, dtype=np.int8)
    for row, scene in zip(facts, scenes, strict=True):
        for thing in scene.things:
            row[SHAPES.index(thing.shape)] = (
                COLOURS.index(thing.colour),
                SIZES.index(thing.size),
                TEXTURES.index(thing.texture),
                len(thing.cells),
                thing.cells[0] if len(thing.cells) == 1 else NOTHING,
            )
        row[_SETTING, :2] = BACKGROUNDS.index(scene.background), VIEWPOINTS.index(scene.viewpoint)
    return facts


def true_of(captions: Sequence[str], facts: Facts) -> NDArray[np.bool_]:
    """Whether each caption is true of each picture, shape (captions, pictures).

    Args:
        captions: in the language of shapes; "also" adds nothing to what is said, "no X" denies an X of that
            colour.
        facts: what `facts_of` returned.

    Raises:
        RecordError: a caption is not in the language of shapes.

    Example:
        >>> from cir_datasets.shapes import Thing
        >>> facts = facts_of([Scene((Thing("star", "blue", "large", "plain", (4,)),), "sandy")])
        >>> true_of(["a blue star", "a red star", "no heart", "no star"], facts).ravel().tolist()
        [True, False, True, False]
    """
    owners: list[int] = []
    rows: list[int] = []
    said: list[tuple[int, ...]] = []
    denied: list[bool] = []
    for number, caption in enumerate(captions):
        reading = read(caption)
        for mention in reading.mentions:
            owners.append(number)
            rows.append(SHAPES.index(mention.shape))
            denied.append(mention.number == 0)
            said.append(
                (
                    _place(COLOURS, mention.colour),
                    _place(SIZES, mention.size),
                    _place(TEXTURES, mention.texture),
                    # "no star" says nothing of a number: any star at all would make it false.
                    mention.number or _UNSAID,
                    _UNSAID if mention.cell is None else mention.cell,
                )
            )
        owners.append(number)
        rows.append(_SETTING)
        denied.append(False)
        setting = _place(BACKGROUNDS, reading.background), _place(VIEWPOINTS, reading.viewpoint)
        said.append((*setting, *[_UNSAID] * (_ATTRIBUTES - 2)))
    claims = np.array(said, dtype=np.int8)
    fits = np.ones((len(rows), len(facts)), dtype=np.bool_)
    for attribute in range(_ATTRIBUTES):
        claim = claims[:, attribute, None]
        fits &= (claim == _UNSAID) | (claim == facts[:, rows, attribute].T)
    things = np.array(rows)
    there = (facts[:, things, 0] != NOTHING).T
    holds = np.where(np.array(denied)[:, None], ~(fits & there), fits & there)
    found: NDArray[np.bool_] = np.logical_and.reduceat(holds, np.unique(owners, return_index=True)[1], axis=0)
    return found


def _place(names: Sequence[str], name: str | None) -> int:
    return _UNSAID if name is None else names.index(name)
