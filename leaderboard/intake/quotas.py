"""How much may come in: scored submissions of an owner a day and in all, uploads an hour from an address.

A board's open phase has limits of its own, which go before the server's and count what came in the phase. On
a sealed board an owner has no more answers in all than its labels afford, whatever else allows.
A quota counts only what was scored; what is refused or fails costs nothing. What waits keeps its place until
it is judged. The place is taken in the transaction that records the submission, so that uploads at the same
moment cannot share one. The limit by address counts every upload, so that a stream of broken files ends. Both
are counted in the database and survive restarts. Days are UTC days.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from leaderboard.boards import Board, Phase
from leaderboard.errors import UploadRefusedError
from leaderboard.identity import LINK
from leaderboard.store import Store
from leaderboard.store.database import upsert
from leaderboard.store.schema import about, arrivals, submissions
from leaderboard.store.submission import WAITING

if TYPE_CHECKING:
    from leaderboard.boards.pricing import BoardPrice

_KEPT_HOURS = 48
"""Arrivals are forgotten after so long."""

_EVER = datetime(1970, 1, 1, tzinfo=UTC)
_WAITS = submissions.c.state.in_(WAITING)
_TODAY = _WAITS | submissions.c.scored_at.between(sa.bindparam("midnight"), sa.bindparam("tomorrow"))
_WHOLE = _WAITS | submissions.c.scored_at.is_not(None)
_OF_PHASE = submissions.c.received_at >= sa.bindparam("opens")
_COUNTS = sa.select(
    # One query: between two, what waits in the first may be judged.
    *(
        sa.func.count().filter(each)
        for each in (_WAITS & _OF_PHASE, _TODAY & _OF_PHASE, _WHOLE & _OF_PHASE, _WHOLE)
    )
).where(
    submissions.c.owner == sa.bindparam("of_owner"),
    submissions.c.board == sa.bindparam("of_board"),
    ~submissions.c.baseline,
)
"""Statements of each upload: to put them together takes longer than to execute them."""


@dataclass(frozen=True)
class Allowance:
    """What an owner and an address may send.

    Args:
        a_day: scored submissions an owner may have on a board in a UTC day; None for any number.
        in_all: the same for all time.
        uploads_an_hour: uploads from one address, of whatever kind.
        bytes_an_hour: their bytes.
    """

    a_day: int | None = None
    in_all: int | None = None
    uploads_an_hour: int = 600
    bytes_an_hour: int = 8 * 2**30


@dataclass(frozen=True)
class Quota:
    """What is left of an owner's quota on a board.

    Args:
        a_day: the limit a UTC day, or None.
        in_all: the limit in all, or None.
        left_today: scored submissions left today, or None for any number.
        left: left in all, or None for any number.
        waiting: submissions that wait to be judged; each keeps a place, and frees it if it is refused.
        resets_at: when the day ends, UTC.
    """

    a_day: int | None
    in_all: int | None
    left_today: int | None
    left: int | None
    waiting: int
    resets_at: datetime

    def to_dict(self) -> dict[str, Any]:
        """The quota as JSON values."""
        return {**asdict(self), "resets_at": self.resets_at.isoformat()}


class Quotas:
    """The quotas of a leaderboard.

    Args:
        store: counts are taken from its submissions.
        limits: what is allowed.
    """

    def __init__(self, store: Store, limits: Allowance) -> None:
        """Remember both."""
        self._database = store.database
        self._limits = limits
        self._key: bytes | None = None

    def of(self, owner: str, board: Board) -> Quota:
        """What is left of an owner's quota on a board; what waits to be judged counts until it is judged."""
        with self._database.read() as connection:
            return self._of(connection, owner, board)

    def check(self, owner: str, board: Board) -> None:
        """Refuse a sender who has nothing left, before the file is kept; `admit` has the last word.

        Raises:
            UploadRefusedError: as from `admit`.
        """
        if not self._unlimited(board):
            with self._database.read() as connection:
                self.admit(connection, owner, board)

    def admit(self, connection: sa.Connection, owner: str, board: Board) -> None:
        """Refuse one more submission where nothing is left.

        Args:
            connection: the transaction that records the submission; no other of this owner is recorded in it.
            owner: whose it is.
            board: where it goes.

        Raises:
            UploadRefusedError: `quota`, or `needs-token` where there is a quota and no account.
        """
        if self._unlimited(board):
            return
        found = self._of(connection, owner, board)
        if owner.startswith(LINK) and (found.a_day, found.in_all) != (None, None):
            # Each private link is an owner of its own, whose limits nobody would ever reach.
            raise UploadRefusedError.of("needs-token", place=f"the board {board.id}")
        if found.left == 0:
            raise UploadRefusedError.of(
                "quota/in-all",
                board=board,
                most=found.in_all or "the",
                fix=_fix(found.waiting, "ask the organisers of this leaderboard"),
            )
        if found.left_today == 0:
            raise UploadRefusedError.of(
                "quota/day",
                board=board,
                quota=found,
                fix=_fix(found.waiting, f"send it after {found.resets_at:%Y-%m-%d %H:%M} UTC"),
                resets_at=found.resets_at,
            )

    def _unlimited(self, board: Board) -> bool:
        """Whether no owner has a quota on a board now."""
        a_day, in_all, _, price = self._rules(board, datetime.now(UTC))
        return a_day is None and in_all is None and price is None

    def _rules(
        self, board: Board, now: datetime
    ) -> tuple[int | None, int | None, Phase | None, BoardPrice | None]:
        """What an owner may have a day and in all, the open phase of the board, and its price."""
        phase = board.phase(now)
        a_day, in_all = self._limits.a_day, self._limits.in_all
        if phase is not None:
            a_day, in_all = phase.a_day or a_day, phase.in_all or in_all
        return a_day, in_all, phase, board.price

    def _of(self, connection: sa.Connection, owner: str, board: Board) -> Quota:
        now = datetime.now(UTC)
        a_day, in_all, phase, price = self._rules(board, now)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        tomorrow = midnight + timedelta(days=1)
        since = _EVER if phase is None else phase.opens
        asked = {"of_owner": owner, "of_board": board.id, "opens": since}
        asked |= {"midnight": midnight, "tomorrow": tomorrow}
        row = connection.execute(_COUNTS, asked).one()
        waiting, of_today, of_all, of_ever = map(int, row)
        if price is not None:
            earlier = of_ever - of_all
            afforded = max(0, price.answers - earlier)
            in_all = afforded if in_all is None else min(in_all, afforded)
        return Quota(
            a_day,
            in_all,
            None if a_day is None else max(0, a_day - of_today),
            None if in_all is None else max(0, in_all - of_all),
            waiting,
            tomorrow,
        )

    def count(self, address: str, size: int) -> None:
        """Count an upload that is refused before it is kept; see `arrive`."""
        refused: UploadRefusedError | None = None
        with self._database.write() as connection:
            try:
                self.arrive(connection, address, size)
            except UploadRefusedError as error:
                refused = error
        if refused is not None:
            raise refused

    def arrive(self, connection: sa.Connection, address: str, size: int) -> None:
        """Count an upload from an address.

        Args:
            connection: a transaction that writes, which is to be committed after a refusal, too.
            address: where it comes from; kept as a keyed hash, for two days.
            size: its bytes.

        Raises:
            UploadRefusedError: `too-many`.
        """
        now = datetime.now(UTC)
        hour = f"{now:%Y-%m-%dT%H}"
        source = hmac.new(self._key_of(connection), address.encode(), hashlib.sha256).hexdigest()
        arriving = {"source": source, "hour": hour, "uploads": 1, "bytes": size}
        more = {"uploads": arrivals.c.uploads + 1, "bytes": arrivals.c.bytes + size}
        upsert(connection, arrivals, arriving, **more)
        query = sa.select(arrivals.c.uploads, arrivals.c.bytes).filter_by(source=source, hour=hour)
        row = connection.execute(query).one()
        if row.uploads == 1:
            oldest = f"{now - timedelta(hours=_KEPT_HOURS):%Y-%m-%dT%H}"
            connection.execute(arrivals.delete().where(arrivals.c.hour < oldest))
        if row.uploads > self._limits.uploads_an_hour or row.bytes > self._limits.bytes_an_hour:
            following = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
            raise UploadRefusedError.of("too-many/uploads", resets_at=following)

    def _key_of(self, connection: sa.Connection) -> bytes:
        """The key of this store for hashes of addresses."""
        if self._key is None:
            query = sa.select(about.c.value).where(about.c.name == "address_key")
            found = connection.execute(query).scalar_one_or_none()
            if found is None:
                # Another process may be making one, and this transaction may end without a trace.
                upsert(connection, about, {"name": "address_key", "value": secrets.token_hex(32)})
                return bytes.fromhex(str(connection.execute(query).scalar_one()))
            self._key = bytes.fromhex(str(found))
        return self._key


def _fix(waiting: int, otherwise: str) -> str:
    """What a sender can do who has nothing left: where files wait, a place may soon be free again."""
    if not waiting:
        return otherwise
    files, one = ("1 file waits", "it") if waiting == 1 else (f"{waiting} files wait", "one of them")
    return f"{files} to be judged: a place is free again if {one} is refused; else {otherwise}"
