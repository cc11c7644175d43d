"""A submission as the store knows it: a file for a board, and the events that say what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

EventKind = Literal["received", "validated", "rejected", "scored", "failed", "published", "superseded"]
"""What can happen to a submission; its state is the kind of its last event."""

TERMINAL: tuple[EventKind, ...] = ("rejected", "failed", "published", "superseded")
"""States in which nothing is left to do."""


@dataclass(frozen=True)
class Event:
    """One thing that happened to a submission, never changed afterwards.

    Args:
        sequence: 1, 2, ... within the submission.
        kind: what happened.
        at: when, UTC.
        payload: what is to be known about it: findings, scores, a message.
    """

    sequence: int
    kind: EventKind
    at: datetime
    payload: dict[str, Any]


@dataclass(frozen=True)
class Submission:
    """A file sent to a board.

    Args:
        id: the submission's id, in addresses too.
        board: the board's id.
        sha256: of the file as it was sent.
        attempt: 1, or more where the same file was rejected or failed before.
        size: bytes.
        file_name: the sender's name for the file.
        received_at: when the file was durable here, UTC.
        submitter: who sent it, as they wrote it; may be empty.
        form: the method's fields as sent beside the file.
        method: the method's fields as shown: the file's own, completed by the form; None before validation.
        baseline: whether the organisers put it up as a floor or baseline.
        events: its log, first to last.
    """

    id: str
    board: str
    sha256: str
    attempt: int
    size: int
    file_name: str
    received_at: datetime
    submitter: str
    form: dict[str, Any]
    method: dict[str, Any] | None
    baseline: bool
    events: tuple[Event, ...]

    @property
    def state(self) -> EventKind:
        """The state, derived from the log."""
        return self.events[-1].kind

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.state in TERMINAL

    def last(self, *kinds: EventKind) -> Event | None:
        """The last event of one of these kinds, or None."""
        return next((event for event in reversed(self.events) if event.kind in kinds), None)

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What validation found: the errors of a rejected file, the warnings of an accepted one."""
        judged = self.last("validated", "rejected")
        return [] if judged is None else list(judged.payload.get("findings", []))

    @property
    def scores(self) -> dict[str, Any] | None:
        """The score report, or None where there is none (yet)."""
        scored = self.last("scored")
        return None if scored is None else dict(scored.payload["report"])
