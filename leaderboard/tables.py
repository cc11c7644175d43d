"""The tables of boards, made anew when what they show has changed, and kept in the store.

Rank groups and the intervals of the main values are kept with them. A reader never waits for the tests and
draws behind these: until they are done the table says so (`groups_pending`) and stands without both. The
worker calls `refresh` after each change; where no worker does, the process that answers the first reader
makes the table at once and the rest in the background.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from cir_metrics.catalogue import package_version
from leaderboard import data
from leaderboard.boards import Board
from leaderboard.settings import DEFAULT_MAX_UPLOAD_MB
from leaderboard.standings import Entry, held_back, shown, standings
from leaderboard.standings.blocks import RANKED, Comparability
from leaderboard.standings.groups import board_groups, may_have_a_group
from leaderboard.standings.intervals import main_intervals, opened
from leaderboard.store import Store
from leaderboard.store.schema import board_states, views
from leaderboard.submission import Submission
from leaderboard.views import Tested, table_view

log = logging.getLogger("leaderboard.tables")

_VERSION = 6
"""Goes up whenever a table would be written otherwise from the same entries."""
_DATA_SECONDS = 30.0
"""How long what the server has of a board's data is taken to be as it was: looking reads whole files."""
_TESTED = 3
"""Goes up whenever groups and intervals would be kept otherwise."""
_LEVEL = 6


_STATE_AND_TAG = (
    sa.select(board_states.c.changed, board_states.c.paused, views.c.changed.label("made_of"), views.c.etag)
    .select_from(views.outerjoin(board_states, board_states.c.board == sa.bindparam("board")))
    .where(views.c.name == sa.bindparam("view"))
)
"""What every reader asks, in one statement that is compiled once."""


@dataclass(frozen=True)
class KeptTable:
    """A board's table as the API sends it.

    Args:
        etag: names its content.
        packed: the JSON, by gzip.
        derived: what readers have made of it; goes with it.
    """

    etag: str
    packed: bytes
    derived: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def body(self) -> bytes:
        """The JSON."""
        return gzip.decompress(self.packed)

    @cached_property
    def view(self) -> dict[str, Any]:
        """What the JSON says; not to be changed."""
        found: dict[str, Any] = json.loads(self.body)
        return found

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
    basis: str


class Tables:
    """The tables of all boards.

    Args:
        store: the submissions, and where tables are kept.
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
        self._data: dict[str, _DataHere] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._lane = ThreadPoolExecutor(max_workers=1, thread_name_prefix="groups")
        self._queued: set[str] = set()

    def close(self) -> None:
        """End the work in the background."""
        self._lane.shutdown(cancel_futures=True)

    def of(self, board: Board) -> KeptTable:
        """A board's table as it is now, with its groups where they are known."""
        found = self._kept(board)
        if found is None:
            with self._locks[board.id]:
                # Those who waited find what the first has made.
                found = self._kept(board)
                if found is None:
                    self._data.pop(board.id, None)
                    found = self._kept(board) or self._made(board)
        if found.view["groups_pending"] and self._at_once:
            return self.refresh(board)
        if found.view["groups_pending"] and board.id not in self._queued:
            self._queued.add(board.id)
            self._lane.submit(self._refresh_later, board)
        return found

    def refresh(self, board: Board) -> KeptTable:
        """Make a board's groups and its table, where they have changed."""
        self._data.pop(board.id, None)
        found = self._kept(board)
        if found is None or found.view["groups_pending"]:
            if not board.sealed:
                self._make_groups(board)
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

    def _kept(self, board: Board) -> KeptTable | None:
        """The kept table, or None where there is none that is up to date."""
        with self._store.database.read() as connection:
            row = connection.execute(_STATE_AND_TAG, _names(board)).first()
        if row is None or row.made_of != (row.changed or 0):
            return None
        if not row.etag.startswith(self._basis(board, row.paused)):
            return None
        held = self._held.get(board.id)
        if held is None or held.etag != row.etag:
            whole = self._row(_names(board)["view"], sa.select(views.c.etag, views.c.body))
            if whole is None or whole.etag != row.etag:
                return None
            held = self._held[board.id] = KeptTable(whole.etag, whole.body)
        return held

    def _made(self, board: Board) -> KeptTable:
        # Read before the entries: what happens in between makes it out of date, and it is made again.
        changed, paused = self._state(board)
        published = self._store.published(board.id)
        entries = self._entries(board, published)
        tested = self._tested(board, entries)
        held = held_back(board, published)
        view = table_view(board, entries, self._max_upload_bytes, self.problem(board), paused, tested, held)
        body = json.dumps(view, ensure_ascii=False, separators=(",", ":")).encode()
        etag = f"{self._basis(board, paused)}{hashlib.sha256(body).hexdigest()[:24]}"
        made = KeptTable(etag, gzip.compress(body, _LEVEL, mtime=0))
        self._store.keep_view(_names(board)["view"], etag, made.packed, changed=changed)
        self._held[board.id] = made
        return made

    def _make_groups(self, board: Board) -> None:
        """Test and draw what is new, and keep groups and intervals with what is behind them."""
        changed, _ = self._state(board)
        entries = self._entries(board, self._store.published(board.id))
        view = f"groups:{board.id}"
        row = self._row(view, sa.select(views.c.body))
        known = {} if row is None else _read_tests(row.body)
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
        made = {
            "group": groups,
            "tests": tests,
            "interval": intervals,
            "drawn": drawn,
        }
        body = gzip.compress(json.dumps(made).encode(), _LEVEL, mtime=0)
        self._store.keep_view(view, _among(entries), body, changed=changed)

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
            keys, problem = data.current_keys(board), data.problem(board)
            limit = self._max_upload_bytes
            fixed = [_VERSION, package_version(), board.model_dump(mode="json"), limit]
            basis = json.dumps([*fixed, keys, problem])
            found = _DataHere(keys, problem, time.monotonic(), basis)
            self._data[board.id] = found
        return found

    def _basis(self, board: Board, paused: str | None) -> str:
        """What a table depends on besides the log, as sixteen digits that its tag begins with."""
        now = datetime.now(UTC)
        passed = [now >= moment for phase in board.phases for moment in (phase.opens, phase.closes)]
        basis = f"{self._data_of(board).basis} {json.dumps([paused, passed])}"
        return hashlib.sha256(basis.encode()).hexdigest()[:16]

    def _state(self, board: Board) -> tuple[int, str | None]:
        query = sa.select(board_states.c.changed, board_states.c.paused).where(
            board_states.c.board == board.id
        )
        with self._store.database.read() as connection:
            row = connection.execute(query).first()
        return (0, None) if row is None else (row.changed, row.paused)

    def _row(self, name: str, query: sa.Select[Any]) -> Any:
        with self._store.database.read() as connection:
            return connection.execute(query.where(views.c.name == name)).first()


def _names(board: Board) -> dict[str, str]:
    return {"board": board.id, "view": f"board:{board.id}"}


def _among(entries: Sequence[Entry]) -> str:
    """Names the scores that groups and intervals are made of, and their order."""
    scored = [(entry, entry.submission.last("scored", "rescored")) for entry in entries]
    among = [
        [entry.submission.id, entry.block, may_have_a_group(entry), entry.value, event and event.sequence]
        for entry, event in scored
    ]
    return hashlib.sha256(json.dumps([_TESTED, *among]).encode()).hexdigest()


def _read_tests(body: bytes) -> dict[str, Any]:
    """What `_make_groups` has kept; empty where it is damaged, so that it is made anew."""
    try:
        found = json.loads(gzip.decompress(body))
    except (ValueError, OSError, EOFError, zlib.error):
        return {}
    whole = isinstance(found, dict) and all(isinstance(each, dict) for each in found.values())
    return found if whole and {"group", "tests"} <= found.keys() else {}
