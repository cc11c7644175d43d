"""A board's table: what stands on it, in order.

Equal values share a rank, the next rank counts everyone above it (1, 1, 3), and inside a tie the earlier
submission stands first. Only numbers whose signatures agree are ranked against each other: entries that were
scored on other data than the latest one are listed below, without a rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leaderboard.boards import Board
from leaderboard.submission import Submission

_EQUAL_DIGITS = 12
"""Values that agree to so many digits after the point are one value: the exactness that scores promise."""


@dataclass(frozen=True)
class Entry:
    """One line of a board's table.

    Args:
        rank: 1, 2, ..., or None where the numbers do not compare with the ranked ones.
        submission: what was sent.
        value: what ranks, a fraction.
        metrics: all metrics by name, fractions.
        signature: printed signature of what ranks.
    """

    rank: int | None
    submission: Submission
    value: float
    metrics: dict[str, float]
    signature: str

    @property
    def method(self) -> dict[str, Any]:
        """The method's fields as shown."""
        return self.submission.method or {}

    @property
    def name(self) -> str:
        """The method's name."""
        return str(self.method.get("name", "unnamed"))

    @property
    def received_at(self) -> datetime:
        """When it came, UTC."""
        return self.submission.received_at

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON values."""
        return {
            "rank": self.rank,
            "submission": self.submission.id,
            "method": self.method,
            "submitter": self.submission.submitter,
            "baseline": self.submission.baseline,
            "received_at": self.received_at.isoformat(),
            "sha256": self.submission.sha256,
            "main": self.value,
            "metrics": self.metrics,
            "signature": self.signature,
        }


def standings(board: Board, published: Sequence[Submission]) -> list[Entry]:
    """The entries of a board, best first, those that do not compare last.

    Args:
        board: says what ranks, and which values are better.
        published: what stands on it, in any order.
    """
    ordered = sorted(published, key=lambda one: (one.received_at, one.id))
    current = _comparability(board, ordered[-1]) if ordered else None
    ranked = [one for one in ordered if _comparability(board, one) == current]
    others = [one for one in ordered if _comparability(board, one) != current]
    sign = -1.0 if board.primary_direction == "higher" else 1.0
    ranked.sort(key=lambda one: sign * _value(board, one))
    entries: list[Entry] = []
    for position, one in enumerate(ranked, start=1):
        tied = bool(entries) and entries[-1].value == _value(board, one)
        entries.append(_entry(board, one, entries[-1].rank if tied else position))
    return [*entries, *(_entry(board, one, None) for one in others)]


def _entry(board: Board, one: Submission, rank: int | None) -> Entry:
    metrics = _report(one)["metrics"]
    signature = _signatures(one)[board.primary_terms[0]]
    return Entry(rank, one, _value(board, one), metrics, str(signature["text"]))


def _value(board: Board, one: Submission) -> float:
    return round(board.primary_value(_report(one)["metrics"]), _EQUAL_DIGITS)


def _comparability(board: Board, one: Submission) -> tuple[str, ...]:
    signatures = _signatures(one)
    return tuple(str(signatures[term]["key"]) for term in board.primary_terms)


def _report(one: Submission) -> dict[str, Any]:
    return one.scores or {}


def _signatures(one: Submission) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = _report(one)["signatures"]
    return found
