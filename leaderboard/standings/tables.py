"""The tables of boards, made anew when what they show has changed, and held in memory.

Rank groups and the intervals of the main values are kept in the store, with the tests and draws behind them.
A reader never waits for these: until they are done the table says so (`groups_pending`) and stands without
both. The worker calls `make_groups` after each change; where no worker does, the process that answers the
first reader makes the table at once and the rest in the background.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from leaderboard.boards import Board, data
from leaderboard.settings import DEFAULT_MAX_UPLOAD_MB
from leaderboard.standings import RANKED, Comparability, Entry, held_back, shown, standings
from leaderboard.standings.views import Tested, table_view
from leaderboard.store import Store
from leaderboard.store.schema import board_states, views
from leaderboard.store.submission import Submission

log = logging.getLogger("leaderboard.tables")

_DATA_SECONDS = 30.0
"""How long what the server has of a board's data is taken to be as it was: looking reads whole files."""
_TESTED = 4
"""Goes up whenever groups and intervals would be kept otherwise."""


class KeptTable:
    """A board's table as the API sends it.

    Args:
        made_of: the board, its last event, and what else the table depends on.
        view: the table as values.
    """

    def __init__(self, made_of: Sequence[object], view: Mapping[str, Any]) -> None:
        """Write it as JSON."""
        self.made_of = made_of
        self.body = json.dumps(view, ensure_ascii=False, separators=(",", ":")).encode()
        self.view: dict[str, Any] = json.loads(self.body)
        """What the JSON says; not to be changed."""
        self.derived: dict[Any, Any] = {}
        """What readers have made of it; goes with it."""

    @cached_property
    def etag(self) -> str:
        """Names what the JSON says."""
        return hashlib.sha256(self.body).hexdigest()[:40]

    @cached_property
    def packed(self) -> bytes:
        """The JSON by gzip: of a thousand entries it takes 15 ms of the processor."""
        return gzip.compress(self.body, 6, mtime=0)

    @cached_property
    def by_number(self) -> list[dict[str, Any]]:
        """The rows in the order in which they came onto the board."""
        return sorted(self.view["rows"], key=lambda row: row["number"])


@dataclass(frozen=True)
class _DataHere:
    """What this server has of a board's data, and when it was looked at."""

    keys: Comparability | None
    problem: str | None
    at: float


class Tables:
    """The tables of all boards.

    Args:
        store: the submissions, and where groups and intervals are kept.
        max_upload_bytes: that the server takes of a file; a board may take less.
        at_once: whether groups are made before a table is given, for readers who cannot come again.
    """

    def __init__(
        self,
        store: Store,
        max_upload_bytes: int = DEFAULT_MAX_UPLOAD_MB * 2**20,
        *,
        at_once: bool = False,
    ) -> None:
        """Nothing is made before it is asked for."""
        self._store = store
        self._max_upload_bytes = max_upload_bytes
        self._at_once = at_once
        self._held: dict[str, KeptTable] = {}
        self._grouped: dict[str, Sequence[object]] = {}
        self._data: dict[str, _DataHere] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._lane = ThreadPoolExecutor(max_workers=1, thread_name_prefix="groups")
        self._queued: set[str] = set()

    def close(self) -> None:
        """End the work in the background."""
        self._lane.shutdown(cancel_futures=True)

    def of(self, board: Board) -> KeptTable:
        """A board's table as it is now, with its groups where they are known."""
        found = self._current(board)
        if found is None:
            with self._locks[board.id]:
                # Those who waited find what the first has made.
                found = self._current(board)
                if found is None:
                    self._data.pop(board.id, None)
                    found = self._made(board)
        if found.view["groups_pending"] and self._at_once:
            return self.refresh(board)
        if found.view["groups_pending"] and board.id not in self._queued:
            self._queued.add(board.id)
            self._lane.submit(self._refresh_later, board)
        return found

    def refresh(self, board: Board) -> KeptTable:
        """Make a board's groups and its table, where they have changed."""
        self.make_groups(board)
        found = self._current(board)
        if found is None or found.view["groups_pending"]:
            with self._locks[board.id]:
                found = self._made(board)
        return found

    def problem(self, board: Board) -> str | None:
        """Why submissions to a board cannot be judged here, as it was found lately; None where they can."""
        return self._data_of(board).problem

    def _refresh_later(self, board: Board) -> None:
        try:
            self.refresh(board)
        except Exception:
            # Whatever it is, the table stands without groups, and the next reader has it tried again.
            log.exception("board %s: its groups could not be made", board.id)
        finally:
            self._queued.discard(board.id)

    def _current(self, board: Board) -> KeptTable | None:
        """The table in memory, or None where there is none that is up to date."""
        held = self._held.get(board.id)
        return held if held is not None and held.made_of == self._basis(board) else None

    def _made(self, board: Board) -> KeptTable:
        # Read before the entries: what happens in between makes it out of date, and it is made again.
        basis = self._basis(board)
        published = self._store.published(board.id)
        entries = self._entries(board, published)
        tested = self._tested(board, entries)
        held, paused = held_back(board, published), self._store.paused(board.id)
        view = table_view(board, entries, self._max_upload_bytes, self.problem(board), paused, tested, held)
        made = self._held[board.id] = KeptTable(basis, view)
        return made

    def make_groups(self, board: Board) -> None:
        """Test and draw what is new, and keep groups and intervals with what is behind them."""
        self._data.pop(board.id, None)
        basis = self._basis(board)
        if board.sealed or self._grouped.get(board.id) == basis:
            return
        from leaderboard.standings.tested import board_groups, main_intervals, opened

        changed = self._store.changed(board.id)
        entries = self._entries(board, self._store.published(board.id))
        if self._tested(board, entries) is not None:  # another process has been faster
            self._grouped[board.id] = basis
            return
        view = f"groups:{board.id}"
        with self._store.database.read() as connection:
            body = connection.execute(sa.select(views.c.body).where(views.c.name == view)).scalar()
        known = {} if body is None else _read_tests(body)
        ids = [entry.submission.id for entry in entries]
        kept = {name: opened(self._store.kept_values(name), board.primary_terms) for name in ids}
        groups: dict[str, int] = {}
        tests: dict[str, float] = {}
        for block in RANKED:
            inside = [entry for entry in entries if entry.block == block]
            found, behind = board_groups(board, inside, kept, known.get("tests", {}))
            groups |= found
            tests |= behind
        drawn = {digest: (low, high) for digest, (low, high) in known.get("drawn", {}).items()}
        intervals, drawn = main_intervals(board, entries, kept, drawn)
        made = {"group": groups, "tests": tests, "interval": intervals, "drawn": drawn}
        self._store.keep_view(view, _among(entries), json.dumps(made).encode(), changed=changed)
        self._grouped[board.id] = basis

    def _tested(self, board: Board, entries: Sequence[Entry]) -> Tested | None:
        """Groups and intervals, or None where they are not made yet; a sealed board has none."""
        if board.sealed or not entries:
            return Tested()
        body = self._store.kept_view(f"groups:{board.id}", _among(entries))
        found = {} if body is None else _read_tests(body)
        return Tested(found["group"], found["interval"]) if found else None

    def _entries(self, board: Board, published: Sequence[Submission]) -> list[Entry]:
        return standings(board, shown(board, published), self._data_of(board).keys)

    def _data_of(self, board: Board) -> _DataHere:
        found = self._data.get(board.id)
        if found is None or time.monotonic() - found.at > _DATA_SECONDS:
            found = _DataHere(data.current_keys(board), data.problem(board), time.monotonic())
            self._data[board.id] = found
        return found

    def _basis(self, board: Board) -> Sequence[object]:
        """The board, its last event, and what else a table depends on."""
        query = sa.select(board_states.c.changed, board_states.c.paused)
        with self._store.database.read() as connection:
            state = connection.execute(query.where(board_states.c.board == board.id)).first()
        now, here = datetime.now(UTC), self._data_of(board)
        passed = [now >= moment for phase in board.phases for moment in (phase.opens, phase.closes)]
        return board, state, passed, here.keys, here.problem


def _among(entries: Sequence[Entry]) -> str:
    """Names the scores that groups and intervals are made of, and their order."""
    scored = [(entry, entry.submission.last("scored", "rescored")) for entry in entries]
    among = [
        [entry.submission.id, entry.block, entry.rank is not None, entry.value, event and event.sequence]
        for entry, event in scored
    ]
    return hashlib.sha256(json.dumps([_TESTED, *among]).encode()).hexdigest()


def _read_tests(body: bytes) -> dict[str, Any]:
    """What `_make_groups` has kept; empty where it is damaged, so that it is made anew."""
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    whole = isinstance(found, dict) and all(isinstance(each, dict) for each in found.values())
    return found if whole and {"group", "tests"} <= found.keys() else {}
