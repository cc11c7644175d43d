"""Signing in with Hugging Face inside a Space: whom a browser's session belongs to.

Gradio makes the session (`gradio.oauth`): its routes `/login/huggingface`, `/login/callback`, `/logout` and
a signed cookie. Outside a Space Gradio signs everybody in as the user of the machine, without asking; so
`settings.check_place` lets no such server start.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from leaderboard.identity import NOBODY, Caller


def session_of(request: Any) -> Mapping[str, Any]:
    """The session of a request: of the API, or of a page, where Gradio has one of its own around it."""
    inner = getattr(request, "request", request)
    session: Mapping[str, Any] = inner.scope.get("session") or {}
    return session


def caller_signed_in(session: Mapping[str, Any]) -> Caller:
    """Whom a session belongs to; nobody where it is empty or has expired.

    Args:
        session: as Gradio keeps it. Its cookie is signed with the client's secret, so that nobody writes one.

    Returns:
        The caller: owner is the account's id (a name can be given up and taken by another), teams are the
        organisations in which the account may write, where Hugging Face says so.
    """
    info = session.get("oauth_info") or {}
    user = info.get("userinfo") or {}
    if not user.get("sub") or info.get("expires_at", 0) < time.time():
        return NOBODY
    teams = [
        f"hf:{one['sub']}"
        for one in user.get("orgs") or ()
        if one.get("sub") and one.get("roleInOrg", "write") != "read"
    ]
    return Caller(f"hf:{user['sub']}", "user", teams=tuple(teams))


def name_signed_in(session: Mapping[str, Any]) -> str:
    """The name to greet the session's user by, or nothing."""
    if caller_signed_in(session) == NOBODY:
        return ""
    return str(session["oauth_info"]["userinfo"].get("preferred_username") or "your account")
