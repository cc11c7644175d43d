"""Who has signed in: a login lies here until it ends; a browser has a random key to it and nothing else.

So signing out ends it, whoever has a copy of the browser's cookie, and no token of the provider is kept.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from leaderboard.identity import Caller, digest
from leaderboard.store import Store
from leaderboard.store.schema import logins

KEY = "login"
"""Of a browser's session: where the key of its login is."""
_NAME_LENGTH = 200


@dataclass(frozen=True)
class Login:
    """Somebody who has signed in.

    Args:
        owner: `hf:` and the account's id: a name can be given up and taken by another.
        name: to greet them by.
        teams: the organisations in which the account may write, as owners.
        expires_at: when it ends, UTC.
    """

    owner: str
    name: str
    teams: tuple[str, ...]
    expires_at: datetime

    @classmethod
    def read(cls, token: Mapping[str, Any]) -> Login:
        """What a provider answers, its id token checked: `userinfo`, and `expires_at` in seconds.

        Raises:
            ValueError: it names no account.
        """
        user = token.get("userinfo") or {}
        if not user.get("sub"):
            raise ValueError("the provider names no account")
        teams = [
            f"hf:{one['sub']}"
            for one in user.get("orgs") or ()
            if one.get("sub") and one.get("roleInOrg", "write") != "read"
        ]
        name = str(user.get("preferred_username") or "your account")[:_NAME_LENGTH]
        ends = datetime.fromtimestamp(token.get("expires_at") or 0, UTC)
        return cls(f"hf:{user['sub']}", name, tuple(teams), ends)

    @property
    def caller(self) -> Caller:
        """What they may do."""
        return Caller(self.owner, "user", teams=self.teams)


class Logins:
    """The logins of a store.

    Args:
        store: where they are, under hashes of their keys.
    """

    def __init__(self, store: Store) -> None:
        """Remember the store."""
        self._database = store.database

    def begin(self, login: Login) -> str:
        """Keep a login, and remove those that have ended; the key to it."""
        key = secrets.token_urlsafe(32)
        row = {"owner": login.owner, "name": login.name, "teams": list(login.teams)}
        with self._database.write() as connection:
            connection.execute(logins.delete().where(logins.c.expires_at < datetime.now(UTC)))
            connection.execute(logins.insert().values(hash=digest(key), expires_at=login.expires_at, **row))
        return key

    def of(self, request: Any) -> Login | None:
        """The login of a request's browser, or None where it has none or it has ended.

        Args:
            request: of the API, or of a page, where Gradio has one of its own around it.
        """
        key = getattr(request, "request", request).scope.get("session", {}).get(KEY)
        if not key:
            return None
        query = sa.select(logins).where(
            logins.c.hash == digest(key), logins.c.expires_at >= datetime.now(UTC)
        )
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else Login(row.owner, row.name, tuple(row.teams), row.expires_at)

    def end(self, key: str) -> None:
        """End a login, if there is one of that key."""
        with self._database.write() as connection:
            connection.execute(logins.delete().where(logins.c.hash == digest(key)))
