"""The filters of CIRCLED, in their order; each session that goes has the first reason that holds.

Four are those of the paper's section 5.1, counted as in its Table 3; the released code has two more (empty
captions, duplicate images). Before all of them stand the sessions that a model gave no answer to.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cir_datasets.common.yaml import package_yaml
from cir_datasets.construction.backends import Features
from cir_datasets.construction.circled.settings import CircledSettings
from cir_datasets.construction.circled.turns import PlayedSession, nearest_pair

Row = dict[str, Any]

FILTERS: Mapping[str, str] = package_yaml("cir_datasets", "construction/circled/stages.yaml")["filters"]
"""Each filter with what it removes, in the order in which they are applied."""
QUALITY = ("rank margin", "text redundancy")
"""The filters that the paper's comparison "w/o quality filter" leaves out."""
_WRONG = {"failed", "success", "several turns", "empty caption"}


def filtered(
    sessions: Sequence[PlayedSession],
    diversity: Features,
    twins: Mapping[str, str],
    settings: CircledSettings,
) -> list[Row]:
    """What becomes of each session.

    Args:
        sessions: played to their end.
        diversity: the encoder that tells captions apart.
        twins: by an image that is not searched the one that it is the same as.
        settings: epsilon, tau and K.

    Returns:
        A row a session: `query`, `kept`, the `filter` that removed it and `why`, `turns`, `ranks`, and
        `nearest`, the highest similarity of two of its captions where that was looked at.
    """
    rows = [_row(session, settings) for session in sessions]
    left = [place for place, row in enumerate(rows) if row["filter"] not in _WRONG]
    close = nearest_pair(diversity, [sessions[place].captions for place in left])
    for place, nearest in zip(left, close, strict=True):
        row = rows[place]
        row["nearest"] = nearest
        if row["filter"] is None and nearest >= settings.tau:
            row |= {"filter": "text redundancy", "why": f"two captions have similarity {nearest:.6f}"}
        if row["filter"] is None and (image := _seen_twice(sessions[place], twins)):
            row |= {"filter": "duplicate image", "why": f"{image} is there twice"}
    return [{**row, "kept": row["filter"] is None} for row in rows]


def _row(session: PlayedSession, settings: CircledSettings) -> Row:
    """A session by the filters that need no vectors."""
    ranks = session.ranks
    filter_, why = None, ""
    if session.failed:
        filter_, why = "failed", session.ended
    elif not session.query["caption"]:
        filter_, why = "empty caption", FILTERS["empty caption"]
    elif not ranks or min(ranks) > settings.k:
        reached = f"best rank {min(ranks)}" if ranks else ""
        filter_, why = "success", "; ".join(filter(None, (session.ended, reached)))
    elif ranks[0] <= settings.k:
        filter_, why = "several turns", f"rank {ranks[0]} at turn 1"
    elif (fall := largest_fall(ranks)) > settings.epsilon:
        filter_, why = "rank margin", f"a target falls by {fall} places"
    return {
        "query": session.query["query"],
        "filter": filter_,
        "why": why,
        "turns": len(ranks),
        "ranks": ranks,
        "nearest": None,
    }


def largest_fall(ranks: Sequence[int]) -> int:
    """By how many places a target falls at most from one turn to the next, equation 3; 0 where it never does.

    Example:
        >>> largest_fall([40, 55, 3]), largest_fall([9])
        (15, 0)
    """
    return max([0, *(later - earlier for earlier, later in itertools.pairwise(ranks))])


def _seen_twice(session: PlayedSession, twins: Mapping[str, str]) -> str | None:
    """An image of a session that is the same picture as an earlier one, targets included."""
    seen: set[str] = set()
    for image in (*session.references, *session.targets):
        first = twins.get(image, image)
        if first in seen:
            return image
        seen.add(first)
    return None


def counts(rows: Iterable[Row]) -> dict[str, int]:
    """Sessions by the filter that removed them, in order; with `begun` first and `kept` last.

    Example:
        >>> counts([{"filter": "success", "kept": False}, {"filter": None, "kept": True}])["kept"]
        1
    """
    listed = list(rows)
    by_filter = Counter(row["filter"] for row in listed)
    found = {name: by_filter[name] for name in FILTERS}
    return {"begun": len(listed), **found, "kept": sum(bool(row["kept"]) for row in listed)}
