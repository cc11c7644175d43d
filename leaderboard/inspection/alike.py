"""Entries with the same first images in their lists: a method sent twice, or a file with small changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leaderboard.inspection.lists import KeptLists, Lists
from leaderboard.store import Store
from leaderboard.submission import Submission
from leaderboard.tables import KeptTable

_NEAREST = 12
"""Entries that an entry is compared with: those nearest to its score."""
_SHARE = 0.5
"""Share of lists that must begin the same for two entries to count as alike."""


@dataclass(frozen=True)
class Alike:
    """An entry whose lists begin like another's.

    Args:
        id: of the entry.
        same: lists that begin with the same images in the same order.
        lists: how many lists there are.
    """

    id: str
    same: int
    lists: int


@dataclass(frozen=True)
class AlikeSearch:
    """What a comparison with the entries nearest to an entry's score found.

    Args:
        alike: entries with at least half of their lists beginning like this entry's, the most alike first.
        looked_at: entries whose lists were compared.
        waiting: entries whose lists are still being read.
    """

    alike: tuple[Alike, ...] = ()
    looked_at: int = 0
    waiting: int = 0


def entries_alike(store: Store, lists: Lists, table: KeptTable, submission: Submission) -> AlikeSearch:
    """Compare an entry's lists with those of the entries nearest to its score.

    Args:
        store: the submissions.
        lists: of entries; the reading of those that are not ready is started.
        table: of the entry's board.
        submission: the entry.
    """
    kept: dict[str, AlikeSearch] = table.derived.setdefault("alike", {})
    found = kept.get(submission.id)
    if found is not None:
        return found
    own = lists.of(submission)
    others = [store.submission(each) for each in _nearest(table.view["rows"], submission.id)]
    theirs = [(other, lists.of(other)) for other in others if other is not None]
    if own is None:
        return AlikeSearch(waiting=len(theirs))
    made = [_compared(entry.id, own, other) for entry, other in theirs if other is not None]
    waiting = sum(other is None and lists.waits(entry) for entry, other in theirs)
    alike = sorted(
        (one for one in made if one.same >= _SHARE * one.lists), key=lambda one: (-one.same, one.id)
    )
    search = AlikeSearch(tuple(alike), len(made), waiting)
    if not search.waiting:
        kept[submission.id] = search
    return search


def _nearest(rows: Sequence[Mapping[str, Any]], own: str) -> list[str]:
    main = next((row["main"] for row in rows if row["submission"] == own), None)
    if main is None:
        return []
    others = [row for row in rows if row["submission"] != own]
    return [row["submission"] for row in sorted(others, key=lambda row: abs(row["main"] - main))[:_NEAREST]]


def _compared(name: str, one: KeptLists, other: KeptLists) -> Alike:
    total = sum(len(member.ranks) for member in one.members)
    if [each.benchmark for each in one.members] != [each.benchmark for each in other.members]:
        return Alike(name, 0, total)
    same = sum(mine.alike(yours) for mine, yours in zip(one.members, other.members, strict=True))
    return Alike(name, same, total)
