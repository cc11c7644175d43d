"""A board's table: what stands on it, in order.

Equal values share a rank, the next rank counts everyone above it (1, 1, 3), and inside a tie the earlier
submission stands first. Only numbers whose signatures agree are ranked against each other: those that this
server would give now, from the data that it has; where it has none, those of the latest entry that skipped
no images. The others are listed below, without a rank, until they are scored again. So are oracles: they
know what no user's query holds, say how far a method could come, and never have a rank. Of a dialogue the
settings are compared and not the user: its board has refused users that it does not want.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from leaderboard import data
from leaderboard.boards import Board, all_metrics
from leaderboard.errors import BoardError
from leaderboard.submission import EventKind, Submission
from submissions.rank_file.words import is_oracle
from submissions.scoring import SKIPPED_IMAGES
from submissions.transcripts.settings import USER

log = logging.getLogger("leaderboard.standings")

Comparability = tuple[str, ...]
"""The signatures' keys of what ranks, a key a term; of a dialogue without its user."""

_EQUAL_DIGITS = 12
"""Values that agree to so many digits after the point are one value: the exactness that scores promise."""

_CHANGES: tuple[EventKind, ...] = ("corrected", "rescored", "verified", "unverified", "flagged", "unflagged")
"""Events after which a row says something else."""


@dataclass(frozen=True)
class Entry:
    """One line of a board's table.

    Args:
        rank: 1, 2, ..., or None for an oracle, and where the numbers do not compare with the ranked ones.
        submission: what was sent.
        value: what ranks, a fraction.
        metrics: all metrics by name, fractions; of a suite its members' too.
        signature: printed signature of what ranks.
        gallery: number of images that the ids were checked against, of a suite in all galleries together, or
            None where they were not.
    """

    rank: int | None
    submission: Submission
    value: float
    metrics: dict[str, float]
    signature: str
    gallery: int | None = None

    @property
    def method(self) -> dict[str, Any]:
        """The method's fields as shown."""
        return self.submission.method or {}

    @property
    def name(self) -> str:
        """The method's name."""
        return str(self.method.get("name", "unnamed"))

    @property
    def oracle(self) -> bool:
        """Whether it says that it knows what no user's query holds."""
        return is_oracle(self.method)

    @property
    def received_at(self) -> datetime:
        """When it came, UTC."""
        return self.submission.received_at

    def to_dict(self, group: int | None = None, interval: Sequence[float] | None = None) -> dict[str, Any]:
        """The entry as JSON values.

        Args:
            group: its rank group, or None where it has none.
            interval: low and high end of its main value's interval, or None where it has none.
        """
        listed = self.submission.last("published", "restored")
        changed = self.submission.last("published", "restored", *_CHANGES)
        return {
            "rank": self.rank,
            "group": group,
            "number": 0 if listed is None else listed.id,
            "submission": self.submission.id,
            "method": self.method,
            "submitter": self.submission.submitter,
            "baseline": self.submission.baseline,
            "is_oracle": self.oracle,
            "verified": self.submission.verified,
            "flag": self.submission.flag,
            "received_at": self.received_at.isoformat(),
            "published_at": None if listed is None else listed.at.isoformat(),
            "changed_at": None if changed is None else changed.at.isoformat(),
            "sha256": self.submission.sha256,
            "main": self.value,
            "interval": None if interval is None else list(interval),
            "metrics": self.metrics,
            "signature": self.signature,
        }


def standings(
    board: Board, published: Sequence[Submission], current: Comparability | None = None
) -> list[Entry]:
    """The entries of a board, best first, then its oracles, best first; those that do not compare last.

    Args:
        board: says what ranks, and which values are better.
        published: what stands on it, in any order.
        current: the comparability keys that the server would give now, or None where it cannot tell. Where no
            entry has them, those of the latest entry that skipped no images take their place.
    """
    ordered = sorted((one for one in published if _is_whole(board, one)), key=lambda one: one.number)
    keys = [_comparability(board, one) for one in ordered]
    wanted = current if current in keys else _latest(board, ordered, keys)
    compared = [one for one, key in zip(ordered, keys, strict=True) if key == wanted]
    others = [one for one, key in zip(ordered, keys, strict=True) if key != wanted]
    sign = -1.0 if board.primary_direction == "higher" else 1.0
    compared.sort(key=lambda one: sign * _value(board, one))
    ranked = [one for one in compared if not is_oracle(one.method or {})]
    others = [*(one for one in compared if is_oracle(one.method or {})), *others]
    entries: list[Entry] = []
    for position, one in enumerate(ranked, start=1):
        tied = bool(entries) and entries[-1].value == _value(board, one)
        entries.append(_entry(board, one, entries[-1].rank if tied else position))
    return [*entries, *(_entry(board, one, None) for one in others)]


def shown(board: Board, published: Sequence[Submission]) -> list[Submission]:
    """Those of what stands on a board whose results are shown now: some phases show theirs at the end."""
    now = datetime.now(UTC)
    moments = [(one, None if one.baseline else board.shown_from(one.received_at)) for one in published]
    return [one for one, moment in moments if moment is None or moment <= now]


def held_back(board: Board, published: Sequence[Submission]) -> tuple[int, datetime | None]:
    """How many entries are not shown yet, and when the first of them are; 0 and None where all are shown."""
    seen = {one.id for one in shown(board, published)}
    moments = [board.shown_from(one.received_at) for one in published if one.id not in seen]
    return len(moments), min((moment for moment in moments if moment is not None), default=None)


def _is_whole(board: Board, one: Submission) -> bool:
    """Whether a submission's row holds what its line needs; a damaged one is left out, not the board."""
    try:
        _comparability(board, one)
        _entry(board, one, None).to_dict()
    except (AttributeError, BoardError, KeyError, TypeError, ValueError) as error:
        log.error("submission %s is left out of %s: its row is damaged: %r", one.id, board.id, error)
        return False
    return True


def _entry(board: Board, one: Submission, rank: int | None) -> Entry:
    signature = _signatures(one)[board.primary_terms[0]]
    metrics = all_metrics(_report(one))
    return Entry(rank, one, _value(board, one), metrics, str(signature["text"]), _gallery(signature))


def _value(board: Board, one: Submission) -> float:
    return round(board.primary_value(_report(one)["metrics"]), _EQUAL_DIGITS)


def checked_gallery(board: Board, entries: Sequence[Entry]) -> int | None:
    """Number of images that a board's ids are checked against, or None where they are not.

    What the ranked entries were scored with says it; on an empty board, the data available.
    """
    compared = [entry for entry in entries if entry.rank is not None] or list(entries)
    if compared:
        return compared[0].gallery
    return board.gallery if data.has_gallery(board) else None


def _gallery(signature: dict[str, Any]) -> int | None:
    """Images that ids were checked against, of a suite all members' together."""
    sizes = [each.get("gallery_size") for each in signature.get("members", [signature])]
    return None if None in sizes else sum(sizes)


def _skips_images(signature: dict[str, Any]) -> bool:
    members = signature.get("members", [signature])
    return any(SKIPPED_IMAGES in each.get("checks_skipped", ()) for each in members)


def _comparability(board: Board, one: Submission) -> Comparability:
    signatures = _signatures(one)
    keys = (str(signatures[term]["key"]) for term in board.primary_terms)
    return tuple(key if board.dialogue is None else key.partition(USER)[0] for key in keys)


def _latest(
    board: Board, ordered: Sequence[Submission], keys: Sequence[Comparability]
) -> Comparability | None:
    """The keys of the latest entry; those of one that skipped images only where all did."""
    term = board.primary_terms[0]
    whole = [key for one, key in zip(ordered, keys, strict=True) if not _skips_images(_signatures(one)[term])]
    return next(reversed(whole or keys), None)


def _report(one: Submission) -> dict[str, Any]:
    return one.scores or {}


def _signatures(one: Submission) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = _report(one)["signatures"]
    return found
