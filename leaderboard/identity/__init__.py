"""Who calls and what they may do: roles, API tokens, private links. Secrets are kept as hashes."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, cast

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from cir_metrics.errors import CallError, UnknownNameError
from leaderboard.store import Store
from leaderboard.store.schema import members, tokens
from leaderboard.store.submission import name_key

Role = Literal["anonymous", "user", "organiser"]

LOCAL = ""
"""The owner of what organisers put up, and of everything on a leaderboard of one person."""

LINK = "link:"
"""What the owners of submissions without an account begin with: each has a private link of its own."""


@dataclass(frozen=True)
class Caller:
    """Whoever makes a request.

    Args:
        owner: whose submissions they may change, `token:ada` or `hf:ada`; empty without an account.
        role: `organiser` may hide, verify, flag, rerun, restore, pause and erase.
        edit_key: the key of a private link that came with the request, or empty.
        teams: owners for whom they may act as well, as their login says.
    """

    owner: str = ""
    role: Role = "anonymous"
    edit_key: str = ""
    teams: tuple[str, ...] = ()

    @property
    def is_organiser(self) -> bool:
        """Whether the caller runs this leaderboard."""
        return self.role == "organiser"


NOBODY = Caller()
"""Somebody without an account and without a key."""
ORGANISER = Caller(LOCAL, "organiser")
"""Whoever can start commands on the server's machine."""


_PREFIX = "cir_"
EDIT_PREFIX = "edit_"
"""How keys of private links begin."""
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")


@dataclass(frozen=True)
class Token:
    """A token as it is kept.

    Args:
        id: its public part, by which it is listed and revoked.
        owner: whose submissions it may change.
        role: what it may do.
        created_at: when it was made, UTC.
        revoked_at: since when it is refused, UTC, or None.
    """

    id: str
    owner: str
    role: Role
    created_at: datetime
    revoked_at: datetime | None


def digest(secret: str) -> str:
    """The hash under which a token or the key of a private link is kept.

    Both have 128 random bits or more, so that one round of SHA-256 is enough.
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def new_edit_key() -> str:
    """A key for the private link of a submission without an account: 128 random bits.

    By its beginning a log knows it, and leaves it out.
    """
    return f"{EDIT_PREFIX}{secrets.token_urlsafe(16)}"


def matches(secret: str, kept: str | None) -> bool:
    """Whether a key is the one whose hash was kept; takes equally long whatever is wrong."""
    return bool(secret) and kept is not None and hmac.compare_digest(digest(secret), kept)


class Tokens:
    """The named tokens of a store.

    Args:
        store: where their hashes are.
    """

    def __init__(self, store: Store) -> None:
        """Remember the store."""
        self._database = store.database

    def create(self, name: str, role: Role = "user") -> str:
        """Make a token.

        Args:
            name: whose it is: letters, digits, `.`, `_` and `-`; several tokens may have the same name.
            role: `user` or `organiser`.

        Returns:
            The token; it is not kept and cannot be shown again.

        Raises:
            CallError: the name has other characters, or looks like another owner's.
        """
        if not _NAME.match(name):
            raise CallError(
                f"{name[:80]!r} cannot name a token's owner. Fix: use letters, digits, '.', '_' and '-', "
                "at most 63, a letter or digit first."
            )
        token_id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        whole = f"{_PREFIX}{token_id}_{secret}"
        row = {"id": token_id, "hash": digest(whole), "owner": f"token:{name}", "role": role}
        with self._database.write() as connection:
            _refuse_alike(name, connection.execute(sa.select(tokens.c.owner).distinct()).scalars())
            connection.execute(tokens.insert().values(**row, created_at=datetime.now(UTC)))
        return whole

    def revoke(self, token_id: str) -> Token:
        """Refuse a token from now on.

        Raises:
            UnknownNameError: no token has that id.
        """
        this = tokens.c.id == token_id
        with self._database.write() as connection:
            row = connection.execute(sa.select(tokens).where(this)).first()
            if row is None:
                raise UnknownNameError(
                    f"no token {token_id[:40]!r}. Fix: use an id of  cir leaderboard token list."
                )
            if row.revoked_at is None:
                connection.execute(tokens.update().where(this).values(revoked_at=datetime.now(UTC)))
            return _token(connection.execute(sa.select(tokens).where(this)).one())

    def all(self) -> list[Token]:
        """All tokens, first made first."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(tokens).order_by(tokens.c.created_at, tokens.c.id))
            return [_token(row) for row in rows]

    def caller(self, secret: str) -> Caller | None:
        """Whose token that is, or None where it is unknown or revoked."""
        query = sa.select(tokens.c.owner, tokens.c.role).where(
            tokens.c.hash == digest(secret), tokens.c.revoked_at.is_(None)
        )
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else Caller(row.owner, cast(Role, row.role))

    def join(self, team: str, name: str) -> None:
        """Let a token's owner act for a team as well.

        Raises:
            CallError: the team's name has other characters than a token's owner may have or looks like
                another team's, or they are in it.
        """
        if not _NAME.match(team):
            raise CallError(
                f"{team[:80]!r} cannot name a team. Fix: use letters, digits, '.', '_' and '-', at most 63."
            )
        try:
            with self._database.write() as connection:
                _refuse_alike(team, connection.execute(sa.select(members.c.team).distinct()).scalars())
                connection.execute(members.insert().values(team=f"team:{team}", owner=f"token:{name}"))
        except IntegrityError as error:
            raise CallError(f"{name} is in the team {team} already.") from error

    def teams_of(self, owner: str) -> tuple[str, ...]:
        """The teams that an owner may act for, as owners, in the order of their names."""
        query = sa.select(members.c.team).where(members.c.owner == owner).order_by(members.c.team)
        with self._database.read() as connection:
            return tuple(connection.execute(query).scalars())


def _refuse_alike(name: str, owners: Iterable[str]) -> None:
    others = (owner.partition(":")[2] for owner in owners)
    alike = next((other for other in others if other != name and name_key(other) == name_key(name)), None)
    if alike is not None:
        raise CallError(
            f"{name!r} looks like {alike!r}, who is known here. Fix: choose a name that is told apart from "
            f"it, or write {alike!r}."
        )


def _token(row: sa.Row[tuple[object, ...]]) -> Token:
    found = row._mapping
    return Token(**{name: found[name] for name in Token.__dataclass_fields__})
