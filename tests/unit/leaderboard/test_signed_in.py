"""Whom a session belongs to."""

from __future__ import annotations

import time
from typing import Any

import pytest

from leaderboard.identity import NOBODY
from leaderboard.identity.signed_in import caller_signed_in

USER = {"sub": "5e01", "preferred_username": "ada"}


def session(user: dict[str, Any], seconds: float = 60) -> dict[str, Any]:
    return {"oauth_info": {"userinfo": user, "expires_at": time.time() + seconds}}


def test_the_id_of_the_account_owns_and_organisations_are_teams() -> None:
    orgs = [{"sub": "0a01", "roleInOrg": "admin"}, {"sub": "0a02", "roleInOrg": "read"}, {"sub": "0a03"}, {}]
    found = caller_signed_in(session({**USER, "orgs": orgs}))
    assert (found.owner, found.role, found.teams) == ("hf:5e01", "user", ("hf:0a01", "hf:0a03"))


@pytest.mark.parametrize("held", [{}, {"oauth_info": None}, session({}), session(USER, -1)])
def test_an_empty_or_expired_session_is_nobodys(held: dict[str, Any]) -> None:
    assert caller_signed_in(held) == NOBODY
