"""Which answers of a rank file need a closer look: all of it at once, before any is looked at on its own.

Nearly every answer of nearly every file has nothing wrong with it. What is found here is only who may have;
`checks` then says what, with its own rules, so that both ways give the same findings.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cir_datasets.rows.columns import id_array
from submissions.rank_file.arrow import numbers
from submissions.rank_file.columns import Columns
from submissions.rank_file.depth import MAX_DEPTH
from submissions.rank_file.image_ids import well_formed
from submissions.validation.questions import Questions

_BLOCK = 2**20
"""Places that are sorted at a time."""


def suspects(columns: Columns, asked: Questions, family: str) -> set[str]:
    """The queries or sessions among those asked whose answers may break a rule.

    Args:
        columns: the answers.
        asked: the benchmark, without its ground truth.
        family: the image family (`image_ids.image_family`).
    """
    wanted = np.array([asked.num_turns.get(name, 0) for name in columns.names], dtype=np.int64)
    known = wanted > 0
    if columns.turn_offsets is None:
        owners = np.arange(len(columns.names))
        suspect = np.zeros(len(columns.names), dtype=np.bool_)
    else:
        given = np.diff(columns.turn_offsets)
        owners = np.repeat(np.arange(len(columns.names)), given)
        suspect = given != wanted
    wrong = (
        _odd_lengths(columns, asked)
        | _with_duplicates(columns)
        | _with_strangers(columns, asked, family)
        | _with_references(columns, asked, owners)
    )
    suspect[owners[wrong]] = True
    return {columns.names[place] for place in np.flatnonzero(suspect & known).tolist()}


def _odd_lengths(columns: Columns, asked: Questions) -> NDArray[np.bool_]:
    lengths, depth = columns.lengths, asked.depth
    odd: NDArray[np.bool_] = (lengths == 0) | (lengths < depth.required) | (lengths > depth.used)
    return odd | (lengths > MAX_DEPTH)


def _with_duplicates(columns: Columns) -> NDArray[np.bool_]:
    """Rankings that name an image twice: sorted, two neighbours are equal."""
    found = np.zeros(len(columns.lengths), dtype=np.bool_)
    for rankings in _blocks(columns):
        width = int(columns.lengths[rankings].max())
        ordered = np.sort(columns.places(rankings, width), axis=1)
        found[rankings] = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    return found


def _blocks(columns: Columns) -> Iterator[NDArray[np.int64]]:
    """The rankings, those of like length together, in blocks of bounded size; the longest are left out.

    A ranking of more than `MAX_DEPTH` images is a suspect for its length alone.
    """
    by_length = np.argsort(columns.lengths, kind="stable")
    by_length = by_length[columns.lengths[by_length] <= MAX_DEPTH]
    while len(by_length):
        # The rows get longer: a block as wide as its last row is a little too wide for its first.
        rows = max(1, _BLOCK // max(1, int(columns.lengths[by_length[0]])))
        block = by_length[:rows]
        rows = max(1, _BLOCK // max(1, int(columns.lengths[block[-1]])))
        yield block[:rows]
        by_length = by_length[rows:]


def _with_strangers(columns: Columns, asked: Questions, family: str) -> NDArray[np.bool_]:
    """Rankings with an image from outside the gallery."""
    if asked.gallery_ids is not None:
        strange = columns.in_gallery(id_array(asked.gallery_ids)) < 0
    else:
        strange = np.array([not well_formed(family, image) for image in columns.image_ids], dtype=np.bool_)
    if not strange.any():
        return np.zeros(len(columns.lengths), dtype=np.bool_)
    places = strange[columns.codes]
    before = np.concatenate([[0], np.cumsum(places)])
    counted: NDArray[np.bool_] = before[columns.offsets[1:]] > before[columns.offsets[:-1]]
    return counted


def _with_references(columns: Columns, asked: Questions, owners: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Rankings that hold the reference of their turn, where the protocol removes it."""
    import pyarrow.compute as pc

    count = len(columns.lengths)
    if not asked.removed:
        return np.zeros(count, dtype=np.bool_)
    starts = np.zeros(len(columns.names), dtype=np.int64)
    if columns.turn_offsets is not None:
        starts = columns.turn_offsets[:-1]
    # An id is never empty, so that the empty text is found nowhere.
    wanted = [""] * count
    for ranking, owner in enumerate(owners.tolist()):
        turns = asked.removed.get(columns.names[owner], ())
        turn = ranking - int(starts[owner]) if columns.turn_offsets is not None else 0
        wanted[ranking] = (turns[turn] or "") if turn < len(turns) else ""
    found_at = pc.index_in(id_array(wanted), value_set=columns.images)
    references = numbers(found_at, null=-1)
    held = columns.codes == np.repeat(references, columns.lengths)
    before = np.concatenate([[0], np.cumsum(held)])
    found: NDArray[np.bool_] = before[columns.offsets[1:]] > before[columns.offsets[:-1]]
    return found
