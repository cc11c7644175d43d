"""What happened to a submission, event by event, in sentences."""

from __future__ import annotations

from leaderboard.submission import Event

_HAPPENED = {
    "received": "The server took the file in.",
    "validated": "The file passed validation.",
    "rejected": "Validation found errors in the file.",
    "scored": "The file was scored.",
    "failed": "It could not be judged.",
    "published": "It came onto the board.",
    "private": "It stands off the board.",
    "withdrawn": "Its owner withdrew it.",
    "superseded": "Another submission took its place.",
    "hidden": "The organisers hid it.",
    "restored": "It was put back.",
    "rerun": "It was judged again.",
    "rescored": "It was scored again.",
    "corrected": "Its words were corrected",
    "verified": "The organisers verified it.",
    "unverified": "The organisers took the verification back.",
    "flagged": "The organisers flagged it.",
    "unflagged": "The organisers took the flag back.",
    "erased": "Its sender's words were erased.",
}


def happened_words(event: Event) -> str:
    """An event in a sentence; of a correction with the fields that it changed.

    Args:
        event: of a submission's log.

    Example:
        >>> from datetime import UTC, datetime
        >>> happened_words(Event(2, "corrected", datetime(2026, 1, 2, tzinfo=UTC), {"fields": ["name"]}))
        'Its words were corrected: name.'
    """
    words = _HAPPENED.get(event.kind, event.kind)
    if event.kind == "corrected":
        fields = ", ".join(event.payload.get("fields") or ())
        words += f": {fields}." if fields else "."
    return words
