"""Who calls, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
