"""Near copies on a sealed board, in a file of its own: which files of an owner differ in few answers.

Whoever sends the same answers with a few changed learns from the score whether those were right. Such files
of one owner are noted for the organisers: nobody else sees the note, and it stops nothing. An answer differs
where a metric of the board may see it; a metric that sees few changes is enough, because its number can be
read for itself, whatever has changed beyond its cutoff.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaderboard.queue.child import FINGERPRINTS
from leaderboard.store import Store
from leaderboard.submission import Submission

_SHARE = 0.02
"""Files of which no larger share of the answers differs are near copies; one answer never is too many."""
_MOST = 10
"""Near copies that are noted of a file: the nearest."""

NearCopy = dict[str, Any]
"""`submission`, and the numbers of queries that `differ` and that there are (`of`)."""


def near_copies(store: Store, submission: Submission, kept: bytes) -> list[NearCopy]:
    """Earlier files of the same owner on the same board that differ in one answer, or in 2 % of them at most.

    Args:
        store: where earlier files are.
        submission: the file that was judged.
        kept: the fingerprints of its answers, an .npz.

    Returns:
        The nearest first; `differ` is the smallest number of changes that a metric sees.
    """
    own = _fingerprints(kept)
    found: list[NearCopy] = []
    for other in store.of_owner(submission.owner):
        if other.board != submission.board or other.number >= submission.number:
            continue
        packed = store.kept_values(other.id)
        prints = None if packed is None else _fingerprints(packed)
        if own is None or prints is None or prints.shape != own.shape:
            continue
        changed = np.count_nonzero(prints != own, axis=0)
        few = changed[(changed > 0) & (changed <= max(1, int(_SHARE * len(own))))]
        if few.size or not changed.any():
            differ = int(few.min(initial=len(own))) if few.size else 0
            found.append({"submission": other.id, "differ": differ, "of": len(own)})
    return sorted(found, key=lambda copy: (copy["differ"], copy["submission"]))[:_MOST]


def _fingerprints(packed: bytes) -> NDArray[np.int64] | None:
    """The fingerprints, or None where something else was kept."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        found: NDArray[np.int64] | None = arrays.get(FINGERPRINTS)
    return found
