"""Near copies on a sealed board, in a file of its own: which files of an owner differ in few answers.

Whoever sends the same answers with a few changed learns from the score whether those were right. Such files
of one owner are noted for the organisers: nobody else sees the note, and it stops nothing.
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
"""Files of which a smaller share of the answers differs are near copies."""
_MOST = 10
"""Near copies that are noted of a file: the nearest."""

NearCopy = dict[str, Any]
"""`submission`, and the numbers of queries that `differ` and that there are (`of`)."""


def near_copies(store: Store, submission: Submission, kept: bytes) -> list[NearCopy]:
    """Earlier files of the same owner on the same board that differ in fewer than 2 % of their answers.

    Args:
        store: where earlier files are.
        submission: the file that was judged.
        kept: the fingerprints of its answers, an .npz.

    Returns:
        The nearest first.
    """
    own = _fingerprints(kept)
    found: list[NearCopy] = []
    for other in store.of_owner(submission.owner):
        if other.board != submission.board or other.number >= submission.number:
            continue
        packed = store.kept_values(other.id)
        prints = None if packed is None else _fingerprints(packed)
        if own is None or prints is None or len(prints) != len(own):
            continue
        differ = int(np.count_nonzero(prints != own))
        if differ < _SHARE * len(own):
            found.append({"submission": other.id, "differ": differ, "of": len(own)})
    return sorted(found, key=lambda copy: (copy["differ"], copy["submission"]))[:_MOST]


def _fingerprints(packed: bytes) -> NDArray[np.int64] | None:
    """The fingerprints, or None where something else was kept."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        found: NDArray[np.int64] | None = arrays.get(FINGERPRINTS)
    return found
