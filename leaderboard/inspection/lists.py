"""The beginnings of entries' rankings, kept in the store, and where the right answer stands in each.

The process that scores a file writes them beside the values per query. Readers see those of public entries;
on a sealed board nothing is kept: its ground truth would show.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.prepared import last_prepared
from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.inspection.hits import ANY, LAST
from leaderboard.queue import LISTS
from leaderboard.queue.beginnings import UNLISTED
from leaderboard.standings.views import results_from
from leaderboard.store import Store
from leaderboard.store.submission import Submission

if TYPE_CHECKING:
    from cir_datasets.browse.queries import ShownRanking, ShownTurn

_HELD = 24
"""Entries whose lists are kept in memory."""


class MemberLists:
    """The beginnings of an entry's rankings for one benchmark.

    Args:
        arrays: as `leaderboard.queue.beginnings.packed_lists` makes them.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Check that all parts fit each other.

        Raises:
            ValueError: they do not.
            KeyError: one is missing.
        """
        self.about: dict[str, Any] = json.loads(arrays["about"].tobytes())
        self.benchmark = str(self.about["benchmark"])
        self.names: list[str] = self.about["names"]
        """Ids of the queries or sessions, in the benchmark's order."""
        self.ranks: NDArray[np.int32] = arrays["rank"]
        """Rank of the best right answer of each list, 0 where it is not listed, shape (lists,)."""
        self.listed: NDArray[np.int32] = arrays["listed"]
        """Images in each list, shape (lists,)."""
        self.starts: NDArray[np.int64] = arrays["starts"]
        """Where each query's lists start, and the end, shape (queries + 1,)."""
        self._images: list[str] = self.about["images"]
        self._top: NDArray[np.int32] = arrays["top"]
        self._subset: NDArray[np.int32] | None = arrays.get("subset")
        self._subset_ranks: NDArray[np.int32] | None = arrays.get("subset_rank")
        self.evidence = {
            name.removeprefix("evidence_"): each
            for name, each in arrays.items()
            if name.startswith("evidence_")
        }
        """Arrays of the score's evidence by name."""
        lists = len(self.ranks)
        fits = (
            self.listed.shape == (lists,)
            and self._top.ndim == 2
            and len(self._top) == lists
            and self.starts.shape == (len(self.names) + 1,)
            and int(self.starts[-1]) == lists
            and bool((np.diff(self.starts) > 0).all())
            and int(self._top.max(initial=-1)) < len(self._images)
        )
        if not fits:
            raise ValueError("the parts of kept lists do not fit each other")

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def __contains__(self, query_id: str) -> bool:
        """Whether it holds the lists of a query or session."""
        return query_id in self._place

    def of(self, query_id: str) -> tuple[ShownRanking, ...]:
        """The rankings of a query (one), of a session (one a turn) or of a dialogue (one a round).

        Raises:
            KeyError: it holds none of that id.
        """
        place = self._place[query_id]
        return tuple(self._ranking(number) for number in range(self.starts[place], self.starts[place + 1]))

    def subset(self, query_id: str) -> ShownRanking | None:
        """The ranking of a query's subset, or None where the benchmark has none.

        Raises:
            KeyError: it holds none of that id.
        """
        place = self._place[query_id]
        if self._subset is None or self._subset_ranks is None:
            return None
        row = self._subset[place]
        return self._shown(row, self._subset_ranks[place], (row >= 0).sum())

    def rounds(self, query_id: str) -> tuple[ShownTurn, ...]:
        """The rounds of a dialogue, each with its answer.

        Raises:
            KeyError: it holds none of that id, or no dialogues.
        """
        from cir_datasets.browse.queries import ShownTurn

        place, captions, references = self._place[query_id], self.about["captions"], self.about["references"]
        return tuple(
            ShownTurn(references[each], captions[each] or "", (self._ranking(each),))
            for each in range(self.starts[place], self.starts[place + 1])
        )

    @cached_property
    def final_ranks(self) -> NDArray[np.int32]:
        """Rank of the best right answer in each query's last list, 0 where it is not listed."""
        found: NDArray[np.int32] = self.ranks[self.starts[1:] - 1]
        return found

    def hits(self, k: int, turn: str = "") -> NDArray[np.bool_]:
        """Whether each query is hit, shape (queries,).

        Args:
            k: a hit has a right answer among the first k.
            turn: `any`, `last`, or the number of a turn: a hit at this turn or before counts, as in Hits@K;
                empty for single queries.
        """
        hits = (self.ranks != UNLISTED) & (self.ranks <= k)
        if turn == LAST:
            last: NDArray[np.bool_] = hits[self.starts[1:] - 1]
            return last
        if turn not in ("", ANY):
            numbers = np.arange(len(hits)) - np.repeat(self.starts[:-1], np.diff(self.starts))
            hits &= numbers < int(turn)
        found: NDArray[np.bool_] = np.logical_or.reduceat(hits, self.starts[:-1])
        return found

    @property
    def subset_hits(self) -> NDArray[np.bool_] | None:
        """Whether the target is the first of each query's subset, shape (queries,); None without subsets."""
        return None if self._subset_ranks is None else self._subset_ranks == 1

    def _ranking(self, number: int) -> ShownRanking:
        return self._shown(self._top[number], self.ranks[number], self.listed[number])

    def _shown(self, codes: NDArray[np.int32], rank: int, listed: int) -> ShownRanking:
        from cir_datasets.browse.queries import ShownRanking

        images = tuple(self._images[code] for code in codes.tolist() if code >= 0)
        return ShownRanking(images, None if rank == UNLISTED else int(rank), int(listed))


@dataclass(frozen=True, eq=False)
class KeptLists:
    """The beginnings of an entry's rankings: the first ten images of each.

    Args:
        members: a benchmark each; several of a suite, in its order.
    """

    members: tuple[MemberLists, ...]

    @classmethod
    def read(cls, packed: bytes) -> KeptLists | None:
        """What the store keeps, or None where it is damaged."""
        try:
            with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
                by_member: dict[int, dict[str, NDArray[Any]]] = {}
                for key in arrays.files:
                    if not key.startswith(LISTS):
                        continue
                    number, _, name = key.removeprefix(LISTS).partition("/")
                    by_member.setdefault(int(number), {})[name] = arrays[key]
            members = tuple(MemberLists(by_member[number]) for number in sorted(by_member))
        except (ValueError, KeyError, TypeError, IndexError, OSError, EOFError, zipfile.BadZipFile):
            return None
        return cls(members) if members else None

    def member(self, benchmark: str | None = None) -> MemberLists:
        """The lists for one benchmark; without a name, for the first.

        Raises:
            UnknownNameError: there are none for that benchmark.
        """
        if benchmark is None:
            return self.members[0]
        for each in self.members:
            if each.benchmark == benchmark:
                return each
        known = ", ".join(each.benchmark for each in self.members)
        raise UnknownNameError(f"no lists for {benchmark!r}. There are those for {known}.")


class Lists:
    """The kept lists of all entries.

    Args:
        store: the submissions, and what is kept of their scores.
    """

    def __init__(self, store: Store) -> None:
        """Nothing is read before it is asked for."""
        self._store = store
        self._read = lru_cache(maxsize=_HELD)(self._of_score)

    def shown(self, submission: Submission) -> bool:
        """Whether readers may see an entry's lists: it is public, on an open board whose data is here."""
        return bool(_data_here(submission))

    def of(self, submission: Submission) -> KeptLists | None:
        """An entry's lists; None where readers may not see them.

        There are none either where an earlier version scored it, or where its data has changed since.

        Args:
            submission: the entry.
        """
        here = _data_here(submission)
        scores = submission.scores if here else None
        runs = [] if scores is None else scores.get("runs") or [scores]
        signed = [{one.get("data_hash") for one in run["signatures"].values()} for run in runs]
        if not runs or signed != [{data_hash} for data_hash in here]:
            return None
        event = submission.last("scored", "rescored")
        return self._read(submission.id, 0 if event is None else event.sequence)

    def _of_score(self, submission_id: str, _event: int) -> KeptLists | None:
        """What the store keeps of the score that counts now, which the number of its event names."""
        packed = self._store.kept_values(submission_id)
        return None if packed is None else KeptLists.read(packed)


def _data_here(submission: Submission) -> list[str]:
    """The hashes of what is prepared here of an entry's board; none where its lists must not be shown."""
    if submission.state != "published" or results_from(submission) is not None:
        return []
    board = boards.find(submission.board)
    if board is None:
        return []
    prepared = [last_prepared(spec) for spec in board.specs]
    if board.sealed or not all(prepared):
        return []
    return [str(each.meta["data_hash"]) for each in prepared if each is not None]
