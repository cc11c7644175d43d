"""A board's table: what stands on it, in order.

Equal values share a rank, the next rank counts everyone above it (1, 1, 3), and inside a tie the earlier
submission stands first. Baselines and oracles have no rank; oracles know what no user's query holds and say
how far a method could come. Only numbers whose signatures agree are ranked against each other: those that
this server would give now, from the data that it has; where it has none, those of the latest entry that
skipped no images. The others stand below, in `blocks` with their reasons. Of a dialogue the settings are
compared and not the user: its board has refused users that it does not want.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from leaderboard.boards import Board, all_metrics, data
from leaderboard.errors import BoardError
from leaderboard.standings.blocks import (
    BLOCKS,
    RANKED,
    Block,
    Comparability,
    Reference,
    members_of,
    places,
    signatures_of,
)
from leaderboard.store.submission import EventKind, Submission
from submissions.rank_file.texts import is_oracle

log = logging.getLogger("leaderboard.standings")

_EQUAL_DIGITS = 12
"""Values that agree to so many digits after the point are one value: the exactness that scores promise."""

_CHANGES: tuple[EventKind, ...] = ("corrected", "rescored", "verified", "unverified", "flagged", "unflagged")
"""Events after which a row says something else."""


@dataclass(frozen=True)
class Entry:
    """One line of a board's table.

    Args:
        rank: 1, 2, ... among the methods of its block, or None for a baseline or an oracle and in a block
            without ranks.
        submission: what was sent.
        value: what ranks, a fraction.
        metrics: all metrics by name, fractions; of a suite its members' too.
        signature: printed signature of what ranks.
        reference: what is known of the reference image in its rankings.
        gallery: number of images that the ids were checked against, of a suite in all galleries together, or
            None where they were not.
        block: with which entries it compares.
        why: a sentence on why that is not the first block; empty there.
    """

    rank: int | None
    submission: Submission
    value: float
    metrics: dict[str, float]
    signature: str
    reference: Reference
    gallery: int | None = None
    block: Block = "current"
    why: str = ""

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
            "block": self.block,
            "why": self.why,
            "reference_evidence": asdict(self.reference),
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
    """The entries of a board, block by block: methods, then baselines, then oracles, each best first.

    Args:
        board: says what ranks, and which values are better.
        published: what stands on it, in any order.
        current: as in `leaderboard.standings.blocks.places`.
    """
    ordered = sorted((one for one in published if _is_whole(board, one)), key=lambda one: one.number)
    sign = -1.0 if board.primary_direction == "higher" else 1.0
    placed = sorted(
        zip(places(board, ordered, current), ordered, strict=True),
        key=lambda each: (
            BLOCKS.index(each[0][0]),
            is_oracle(each[1].method or {}),
            each[1].baseline,
            sign * _value(board, each[1]),
        ),
    )
    entries: list[Entry] = []
    counts = Counter[Block]()
    for (block, why), one in placed:
        entry = _entry(board, one, block, why)
        if block in RANKED and not (entry.oracle or one.baseline):
            counts[block] += 1
            above = entries[-1] if counts[block] > 1 else entry
            tied = counts[block] > 1 and above.value == entry.value
            entry = replace(entry, rank=above.rank if tied else counts[block])
        entries.append(entry)
    return entries


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
        places(board, [one], None)
        _entry(board, one, "current").to_dict()
    except (AttributeError, BoardError, KeyError, TypeError, ValueError) as error:
        log.error("submission %s is left out of %s: its row is damaged: %r", one.id, board.id, error)
        return False
    return True


def _entry(board: Board, one: Submission, block: Block, why: str = "") -> Entry:
    signature = signatures_of(one)[board.primary_terms[0]]
    return Entry(
        rank=None,
        submission=one,
        value=_value(board, one),
        metrics=all_metrics(board.told(one.scores or {})),
        signature=str(signature["text"]),
        reference=Reference.of(signature),
        gallery=_gallery(signature),
        block=block,
        why=why,
    )


def _value(board: Board, one: Submission) -> float:
    # Told values order a sealed board: the order of finer ones would tell what is not priced.
    return round(board.primary_value(board.told(one.scores or {})["metrics"]), _EQUAL_DIGITS)


def checked_gallery(board: Board, entries: Sequence[Entry]) -> int | None:
    """Number of images that a board's ids are checked against, or None where they are not.

    What the ranked entries were scored with says it; on an empty board, the data available.
    """
    compared = [entry for entry in entries if entry.rank is not None] or list(entries)
    if compared:
        return compared[0].gallery
    return board.gallery if data.has_gallery(board) else None


def _gallery(signature: Mapping[str, Any]) -> int | None:
    """Images that ids were checked against, of a suite all members' together."""
    sizes: list[int | None] = [each.get("gallery_size") for each in members_of(signature)]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None
