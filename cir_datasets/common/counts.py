"""Counts in words: one query, two queries."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    Args:
        number: how many.
        one: the noun of one.
        many: the noun of several; without it `one` with an s.

    Example:
        >>> counted(1, "query", "queries"), counted(2_000, "query", "queries"), counted(0, "image")
        ('1 query', '2,000 queries', '0 images')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def counted_rows(number: int, multi_turn: bool) -> str:
    """A number of sessions, or of queries.

    Example:
        >>> counted_rows(1, multi_turn=True), counted_rows(3, multi_turn=False)
        ('1 session', '3 queries')
    """
    return counted(number, "session") if multi_turn else counted(number, "query", "queries")
