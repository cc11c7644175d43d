"""What leads a board: its first rank group, or what stands first where it has no groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leaderboard.boards import Board
from leaderboard.pages.figures import with_interval
from leaderboard.pages.labels import ranked_by
from leaderboard.views import compared_rows, method_name

_NAMED = 3
"""How many methods of the leading group are named."""


@dataclass(frozen=True)
class Leaders:
    """What leads a board.

    Args:
        words: what they are: `Leading group`, `First` or `Best baseline`.
        metric: what ranks.
        methods: names of the first few, each with its value as tables show it and its interval, where it has
            one.
        more: how many are not named.
    """

    words: str
    metric: str
    methods: tuple[tuple[str, str], ...]
    more: int

    @property
    def said(self) -> str:
        """All of it in one line."""
        listed = "; ".join(f"{name} {score}" for name, score in self.methods)
        more = f"; and {self.more} more" if self.more else ""
        return f"{self.words} by {self.metric}: {listed}{more}"


def leaders(board: Board, rows: Sequence[Mapping[str, Any]]) -> Leaders | None:
    """What leads a board, or None where nothing has been entered.

    Args:
        board: the board.
        rows: of its table.
    """
    compared = compared_rows(rows)
    first = [row for row in compared if row["group"] == 1]
    words = "Leading group"
    if not first:
        entered = [row for row in compared if not row["baseline"]]
        first = [row for row in (entered or compared) if row["main"] == (entered or compared)[0]["main"]]
        words = "First" if entered else "Best baseline"
    if not first:
        return None
    methods = tuple(
        (method_name(row), with_interval(row["main"], row["interval"], board.primary_unit))
        for row in first[:_NAMED]
    )
    metric = f"the {ranked_by(board)}" if len(board.primary_terms) > 1 else board.primary_label
    return Leaders(words, metric, methods, len(first[_NAMED:]))
