"""The beginnings of entries' rankings, kept in the store, and where the right answer stands in each.

They are made once an entry, by the worker when it has judged it, or when the first reader asks. Only entries
that everybody may read have them, and none of a sealed board has: its ground truth would show.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import threading
import time
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from cir_datasets.prepared import last_prepared
from cir_metrics.catalogue import package_version
from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.errors import FileStoreError, LostFileError, PassingError
from leaderboard.inspection.hits import ANY, LAST, right_by
from leaderboard.inspection.making import SHOWN, UNLISTED, made_lists
from leaderboard.queue.child import Limits
from leaderboard.store import Store
from leaderboard.store.files import FileStore
from leaderboard.store.schema import views
from leaderboard.submission import Submission
from leaderboard.views import results_from

if TYPE_CHECKING:
    from cir_datasets.browse import ShownRanking

log = logging.getLogger("leaderboard.inspection")

_VERSION = 4
"""Goes up whenever the lists of the same file would be kept otherwise."""
_DATA_SECONDS = 30.0
"""As for tables: how long what was prepared is taken to be as it was."""
_AGAIN_SECONDS = 600.0
"""Seconds before lists that could not be made are tried again."""
_PREFIX = "lists:"
_HELD = 24
"""Entries whose lists are kept in memory."""


@dataclass(frozen=True, eq=False)
class DialogueRound:
    """One round of a dialogue.

    Args:
        caption: what the user said.
        reference: the image that it starts from, or None.
        ranking: the answer.
    """

    caption: str
    reference: str | None
    ranking: ShownRanking


class MemberLists:
    """The beginnings of an entry's rankings for one benchmark.

    Args:
        arrays: as `leaderboard.inspection.making.packed_lists` makes them.
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

    def rounds(self, query_id: str) -> tuple[DialogueRound, ...]:
        """The rounds of a dialogue; empty where the entry is not one.

        Raises:
            KeyError: it holds none of that id.
        """
        place = self._place[query_id]
        if "captions" not in self.about:
            return ()
        span = range(self.starts[place], self.starts[place + 1])
        captions, references = self.about["captions"], self.about["references"]
        return tuple(DialogueRound(captions[each], references[each], self._ranking(each)) for each in span)

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
        from cir_datasets.browse import ShownRanking

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
                    number, _, name = key.partition("/")
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

    def of(self, query_id: str, benchmark: str | None = None) -> tuple[ShownRanking, ...]:
        """The rankings of a query or session; see `MemberLists.of`.

        Raises:
            KeyError: it holds none of that id.
            UnknownNameError: there are no lists for that benchmark.
        """
        return self.member(benchmark).of(query_id)


class Lists:
    """The kept lists of all entries.

    Args:
        store: the submissions, and where lists are kept.
        files: the rank files.
        limits: what reading one file may take; None takes the usual limits.
    """

    def __init__(self, store: Store, files: FileStore, limits: Limits | None = None) -> None:
        """Nothing is made before it is asked for."""
        self._store, self._files, self._limits = store, files, limits or Limits()
        self._lane = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lists")
        self._queued: set[str] = set()
        self._failed: dict[str, float] = {}
        self._held: OrderedDict[str, tuple[str, KeptLists]] = OrderedDict()
        self._bases: dict[str, tuple[float, str | None]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def close(self) -> None:
        """End the work in the background at once. Unfinished lists are made at the next request."""
        self._stop.set()
        self._lane.shutdown(cancel_futures=True)

    def shown(self, submission: Submission) -> bool:
        """Whether readers may see an entry's lists: it is public, on an open board whose data is here."""
        return self._basis_of(submission) is not None

    def of(self, submission: Submission) -> KeptLists | None:
        """An entry's lists; None if they are not ready, when their making is started, or must not be shown.

        Args:
            submission: the entry.
        """
        found = self._kept(submission)
        if found is None and self._may_begin(submission):
            self._lane.submit(self._make_later, submission)
        return found

    def waits(self, submission: Submission) -> bool:
        """Whether an entry's lists are being made: they may be shown, are not ready, and have not failed.

        Args:
            submission: the entry.
        """
        etag = self.etag(submission)
        return etag is not None and not self._has_failed(etag) and self._kept(submission) is None

    def make(self, submission: Submission, stopped: threading.Event | None = None) -> KeptLists | None:
        """An entry's lists, made now where they are not kept; None where they are not shown or not made.

        Args:
            submission: the entry.
            stopped: ends the making when it is set; None is this object's own, which `close` sets.
        """
        found = self._kept(submission)
        etag = self.etag(submission)
        if found is not None or etag is None:
            return found
        board, stop = boards.board(submission.board), stopped or self._stop
        try:
            file = self._files.local_copy(submission.sha256)
            packed = made_lists(file, board, submission.file_name, submission.form, self._limits, stop)
        except (PassingError, FileStoreError, LostFileError) as error:
            log.warning("the lists of submission %s are not made: %s", submission.id, error)
            packed = None
        found = None if packed is None else KeptLists.read(packed)
        if packed is None or found is None:
            if stop.is_set():
                return None
            self._failed[etag] = time.monotonic()
            return None
        self._store.keep_view(_name(submission), etag, packed)
        self._hold(submission, etag, found)
        return found

    def refresh(self, submission_id: str, stopped: threading.Event | None = None) -> None:
        """Make the lists of a submission that was judged just now, if they are to be shown.

        Args:
            submission_id: its id.
            stopped: as for `make`.
        """
        submission = self._store.submission(submission_id)
        if submission is not None:
            self.make(submission, stopped)

    def missing(self) -> list[str]:
        """Ids of the entries that are to be shown and have no lists yet, board by board."""
        query = sa.select(views.c.name).where(views.c.name.startswith(_PREFIX))
        with self._store.database.read() as connection:
            kept = set(connection.scalars(query))
        entries = (entry for board in boards.boards() for entry in self._store.published(board.id))
        return [entry.id for entry in entries if _name(entry) not in kept and self.shown(entry)]

    def _make_later(self, submission: Submission) -> None:
        try:
            self.make(submission)
        except Exception:
            # Whatever it is, pages stand without lists, and a later reader has it tried again.
            log.exception("the lists of submission %s could not be made", submission.id)
            self._failed[self.etag(submission) or ""] = time.monotonic()
        finally:
            self._queued.discard(submission.id)

    def _may_begin(self, submission: Submission) -> bool:
        etag = self.etag(submission)
        if etag is None or self._has_failed(etag):
            return False
        with self._lock:
            if submission.id in self._queued:
                return False
            self._queued.add(submission.id)
        return True

    def _has_failed(self, etag: str) -> bool:
        return time.monotonic() - self._failed.get(etag, -_AGAIN_SECONDS) < _AGAIN_SECONDS

    def _kept(self, submission: Submission) -> KeptLists | None:
        etag = self.etag(submission)
        if etag is None:
            return None
        held = self._held.get(submission.id)
        if held is not None and held[0] == etag:
            return held[1]
        packed = self._store.kept_view(_name(submission), etag)
        found = None if packed is None else KeptLists.read(packed)
        if found is not None:
            self._hold(submission, etag, found)
        return found

    def _hold(self, submission: Submission, etag: str, lists: KeptLists) -> None:
        with self._lock:
            self._held[submission.id] = etag, lists
            self._held.move_to_end(submission.id)
            while len(self._held) > _HELD:
                self._held.popitem(last=False)

    def etag(self, submission: Submission) -> str | None:
        """Names what an entry's lists depend on; None where they must not be shown.

        Args:
            submission: the entry.
        """
        basis = self._basis_of(submission)
        if basis is None:
            return None
        return hashlib.sha256(f"{basis} {submission.sha256}".encode()).hexdigest()

    def _basis_of(self, submission: Submission) -> str | None:
        if submission.state != "published" or results_from(submission) is not None:
            return None
        try:
            board = boards.board(submission.board)
        except UnknownNameError:  # the board was removed
            return None
        return None if board.sealed else self._basis(board)

    def _basis(self, board: Board) -> str | None:
        """What all lists of a board depend on, or None where its data is not prepared here."""
        at, basis = self._bases.get(board.id, (-_DATA_SECONDS, None))
        if time.monotonic() - at <= _DATA_SECONDS:
            return basis
        prepared = [last_prepared(spec) for spec in board.specs]
        basis = None
        if all(each is not None for each in prepared):
            hashes = [(each.meta["data_hash"], each.meta["gallery_hash"]) for each in prepared if each]
            settings = None if board.dialogue is None else board.dialogue.model_dump(mode="json")
            named = [board.benchmark, right_by(board)]
            basis = json.dumps([_VERSION, SHOWN, package_version(), *named, settings, hashes])
        self._bases[board.id] = time.monotonic(), basis
        return basis


def _name(submission: Submission) -> str:
    return f"{_PREFIX}{submission.id}"
