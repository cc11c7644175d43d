"""How much may come in: scored submissions of an owner a day and in all, uploads an hour from an address.

A board's open phase has limits of its own, which go before the server's and count what came in the phase.
A quota counts only what was scored; what is refused or fails costs nothing. The limit by address counts every
upload, so that a stream of broken files ends. Both are counted in the database and survive restarts. Days are
UTC days.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.boards import Phase
from leaderboard.errors import UploadRefusedError
from leaderboard.identity import LINK
from leaderboard.store import Store
from leaderboard.store.database import upsert
from leaderboard.store.schema import about, arrivals, submissions
from leaderboard.submission import WAITING

_KEPT_HOURS = 48
"""Arrivals are forgotten after so long."""


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
        resets_at: when the day ends, UTC.
    """

    a_day: int | None
    in_all: int | None
    left_today: int | None
    left: int | None
    resets_at: datetime

    def to_dict(self) -> dict[str, Any]:
        """The quota as JSON values."""
        return {
            "a_day": self.a_day,
            "in_all": self.in_all,
            "left_today": self.left_today,
            "left": self.left,
            "resets_at": self.resets_at.isoformat(),
        }


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

    def of(self, owner: str, board: str, limits: Allowance | None = None) -> Quota:
        """What is left of an owner's quota on a board; what waits to be judged counts until it is judged."""
        now = datetime.now(UTC)
        phase = _phase_of(board, now)
        asked = limits or self._limits
        if limits is None and phase is not None:
            asked = Allowance(phase.a_day or asked.a_day, phase.in_all or asked.in_all)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        mine = [submissions.c.owner == owner, submissions.c.board == board, ~submissions.c.baseline]
        if phase is not None:
            mine.append(submissions.c.received_at >= phase.opens)
        waits = submissions.c.state.in_(WAITING)
        count = sa.select(sa.func.count()).where(*mine)
        with self._database.read() as connection:
            today = connection.execute(
                count.where(waits | (submissions.c.scored_at >= midnight))
            ).scalar_one()
            whole = connection.execute(count.where(waits | submissions.c.scored_at.is_not(None))).scalar_one()
        return Quota(
            asked.a_day,
            asked.in_all,
            None if asked.a_day is None else max(0, asked.a_day - today),
            None if asked.in_all is None else max(0, asked.in_all - whole),
            midnight + timedelta(days=1),
        )

    def check(self, owner: str, board: str, limits: Allowance | None = None) -> Quota:
        """The quota, where something is left of it.

        Raises:
            UploadRefusedError: `quota`, or `needs-token` where there is a quota and no account.
        """
        found = self.of(owner, board, limits)
        if owner.startswith(LINK) and (found.a_day, found.in_all) != (None, None):
            # Each private link is an owner of its own, whose limits nobody would ever reach.
            raise UploadRefusedError(
                "needs-token",
                f"the board {board} takes files from those who have a token.",
                fix="ask its organisers for one, and send it as  Authorization: Bearer TOKEN",
                status=401,
            )
        if found.left == 0:
            raise UploadRefusedError(
                "quota",
                f"all {found.in_all} submissions that one owner may have on {board} were scored or wait.",
                fix="ask the organisers of this leaderboard",
                status=429,
            )
        if found.left_today == 0:
            raise UploadRefusedError(
                "quota",
                f"the {found.a_day} submissions a day that an owner may have on {board} were scored or wait.",
                fix=f"send it after {found.resets_at:%Y-%m-%d %H:%M} UTC",
                status=429,
                resets_at=found.resets_at,
            )
        return found

    def arrive(self, address: str, size: int) -> None:
        """Count an upload from an address.

        Args:
            address: where it comes from; kept as a keyed hash, for two days.
            size: its bytes.

        Raises:
            UploadRefusedError: `too-many`.
        """
        now = datetime.now(UTC)
        hour = f"{now:%Y-%m-%dT%H}"
        with self._database.write() as connection:
            source = hmac.new(_key(connection), address.encode(), hashlib.sha256).hexdigest()
            oldest = f"{now - timedelta(hours=_KEPT_HOURS):%Y-%m-%dT%H}"
            connection.execute(arrivals.delete().where(arrivals.c.hour < oldest))
            upsert(
                connection,
                arrivals,
                {"source": source, "hour": hour, "uploads": 1, "bytes": size},
                uploads=arrivals.c.uploads + 1,
                bytes=arrivals.c.bytes + size,
            )
            this = sa.select(arrivals).where(arrivals.c.source == source, arrivals.c.hour == hour)
            row = connection.execute(this).one()
        if row.uploads > self._limits.uploads_an_hour or row.bytes > self._limits.bytes_an_hour:
            following = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
            raise UploadRefusedError(
                "too-many",
                "too many uploads have come from this address within an hour.",
                fix=f"go on after {following:%Y-%m-%d %H:%M} UTC",
                status=429,
                resets_at=following,
            )


def _phase_of(board: str, now: datetime) -> Phase | None:
    try:
        return boards.board(board).phase(now)
    except UnknownNameError:
        return None


def _key(connection: sa.Connection) -> bytes:
    """The key of this store for hashes of addresses."""
    query = sa.select(about.c.value).where(about.c.name == "address_key")
    found = connection.execute(query).scalar_one_or_none()
    if found is None:
        upsert(connection, about, {"name": "address_key", "value": secrets.token_hex(32)})
        found = connection.execute(query).scalar_one()
    return bytes.fromhex(str(found))
