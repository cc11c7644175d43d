"""The events of a submission, in sentences."""

from __future__ import annotations

from cir_datasets.common.yaml import package_yaml
from leaderboard.store.submission import Event


def event_words(event: Event) -> str:
    """An event in a sentence; a correction with the fields that it changed.

    Args:
        event: of a submission's log.

    Example:
        >>> from datetime import UTC, datetime
        >>> event_words(Event(2, "corrected", datetime(2026, 1, 2, tzinfo=UTC), {"fields": ["name"]}))
        'Its words were corrected: name.'
    """
    words: str = package_yaml("leaderboard", "pages/event_words.yaml").get(event.kind, event.kind)
    fields = event.payload.get("fields") if event.kind == "corrected" else None
    return f"{words.rstrip('.')}: {', '.join(fields)}." if fields else words
