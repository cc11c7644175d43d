"""Who makes a request: the holder of a token, of a private link's key, who has signed in, or anybody.

On a leaderboard of one person (`local`) whoever reaches it is that person; it listens on this machine only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from secrets import token_hex

from fastapi import Request

from leaderboard.errors import UploadRefusedError
from leaderboard.identity import LINK, NOBODY, ORGANISER, Caller, Tokens, digest, new_edit_key
from leaderboard.intake.life import may
from leaderboard.server import Server
from leaderboard.store.submission import By, Submission

EDIT_KEY = "X-Edit-Key"
"""The header with the key of a private link."""

_NOT_FOR_ALL = ("private", "hidden", "withdrawn")
"""States of submissions that nobody but their owner and organisers can read."""


def caller_of(request: Request, server: Server, edit_key: str = "") -> Caller:
    """Who makes a request.

    Args:
        request: of the API or of a page.
        server: the leaderboard.
        edit_key: from a private link that is open in a page; programs send the header. Neither stands in a
            query, which proxies log and browsers hand on.

    Raises:
        UploadRefusedError: the token is not known here.
    """
    if server.settings.accounts == "local":
        return ORGANISER
    key = edit_key or request.headers.get(EDIT_KEY, "")
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer":
        # A login of another kind is for a proxy in front of this server.
        login = None
        if server.settings.accounts == "oauth":
            from leaderboard.identity.signed_in import Logins

            login = Logins(server.store).of(request)
        return replace(NOBODY if login is None else login.caller, edit_key=key)
    found = Tokens(server.store).caller(secret.strip())
    if found is None:
        raise UploadRefusedError.of("bad-token")
    return replace(found, edit_key=key)


@dataclass(frozen=True)
class Sender:
    """Whoever sends a file.

    Args:
        owner: whose submission it becomes.
        address: where the request comes from; it is counted and not kept.
        edit_key: the key of its private link, where the sender has no account; shown once.
    """

    owner: str
    address: str
    edit_key: str = ""

    @property
    def edit_hash(self) -> str | None:
        """What is kept of the key."""
        return digest(self.edit_key) if self.edit_key else None


def sender_of(request: Request, server: Server) -> Sender:
    """As whom a caller sends a file; somebody without an account gets a private link.

    Raises:
        UploadRefusedError: the token is not known here, or this server counts by accounts and there is none.
    """
    caller = caller_of(request, server)
    address = request.client.host if request.client else ""
    if caller.owner or caller.is_organiser:
        return Sender(caller.owner, address)
    if server.settings.accounts == "oauth":
        raise UploadRefusedError.of("needs-account")
    if server.settings.a_day is not None or server.settings.in_all is not None:
        raise UploadRefusedError.of("needs-token", place="this server")
    return Sender(f"{LINK}{token_hex(6)}", address, new_edit_key())


def as_whom(server: Server, caller: Caller, submission: Submission) -> By | None:
    """As whom a caller may change a submission, or None where they may not."""
    teams = Tokens(server.store).teams_of(caller.owner) if caller.owner else ()
    return may(caller, submission, (*teams, *caller.teams))


def readable(server: Server, caller: Caller, submission_id: str) -> Submission:
    """A submission that a caller may read.

    Raises:
        UploadRefusedError: there is none of that id, or none for them; which of the two is not said.
    """
    submission = server.store.submission(submission_id)
    if submission is None or (_is_hidden(submission) and as_whom(server, caller, submission) is None):
        raise UploadRefusedError.of("unknown-submission", submission_id=submission_id[:40])
    return submission


def _is_hidden(submission: Submission) -> bool:
    """Whether nobody but its owner and organisers can read a submission."""
    if submission.state == "superseded":
        return submission.last("published") is None
    if not submission.finished:
        return not submission.publish
    return submission.state in _NOT_FOR_ALL


def changeable(server: Server, caller: Caller, submission_id: str) -> tuple[Submission, By]:
    """A submission that a caller may change, and as whom.

    Raises:
        UploadRefusedError: they may not read it, or may not change it.
    """
    submission = readable(server, caller, submission_id)
    by = as_whom(server, caller, submission)
    if by is None:
        raise UploadRefusedError.of("not-yours", submission=submission)
    return submission, by
