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
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from cir_metrics.catalogue import FORMAT, SKIPPED_IMAGES
from leaderboard.boards import Board, all_metrics, data
from leaderboard.errors import BoardError
from leaderboard.store.submission import EventKind, Submission
from submissions.rank_file.texts import is_oracle
from submissions.transcripts.settings import USER

log = logging.getLogger("leaderboard.standings")

_EQUAL_DIGITS = 12
"""Values that agree to so many digits after the point are one value: the exactness that scores promise."""

_CHANGES: tuple[EventKind, ...] = ("corrected", "rescored", "verified", "unverified", "flagged", "unflagged")
"""Events after which a row says something else."""


Comparability = tuple[str, ...]
"""The signatures' keys of what ranks, a key a term; of a dialogue without its user."""
Block = Literal["current", "older_format", "reference", "gallery", "signature"]
"""`current`: the board's question, answered. `older_format`: signatures of an earlier format. `reference`:
declared to be kept or removed against the protocol. `gallery`: another gallery was evidently ranked.
`signature`: other data, checks or versions."""

BLOCKS: tuple[Block, ...] = get_args(Block)
"""In the order in which they stand."""
RANKED: tuple[Block, ...] = ("current", "older_format")
"""Those whose entries are ranked, each block for itself."""
UNVERIFIED = (
    "Reference unverified: the board keeps the reference image, no list of the entry holds it, and nothing "
    "is declared. A method may rank it low; its owner can say so."
)
"""What the mark says."""


@dataclass(frozen=True)
class Reference:
    """What is known of the reference image in an entry's rankings; of a suite over all members.

    Args:
        used: by its signature: `kept`, `removed`, `outside` the gallery, or `none` that could be; of members
            that differ all of it, by commas.
        held: lists that hold it, or None where that was not looked at.
        lists: lists looked at, or None likewise.
        declared: what its maker says, `kept` or `removed`; empty where nothing.
        unverified: whether it should be kept, no list shows it and nothing is declared.
        members: of a suite `held` and `lists` by member; else empty.
    """

    used: str
    held: int | None
    lists: int | None
    declared: str
    unverified: bool
    members: Mapping[str, Sequence[int] | None] = field(default_factory=dict)

    @classmethod
    def of(cls, signature: Mapping[str, Any]) -> Reference:
        """From a stored signature, of any format.

        Args:
            signature: as `to_dict` of a number's signature wrote it.
        """
        members = members_of(signature)
        shares = [share for each in members if (share := each.get("reference_held")) is not None]
        held, lists = (sum(column) for column in zip(*shares, strict=True)) if shares else (None, None)
        used, declared = (
            ", ".join(dict.fromkeys(filter(None, (str(each.get(name) or "") for each in members))))
            for name in ("reference", "reference_declared")
        )
        own = {str(each["benchmark"]): each.get("reference_held") for each in signature.get("members", ())}
        return cls(used, held, lists, declared, bool(signature.get("unverified")), own)


def reference_words(reference: Mapping[str, Any]) -> str:
    """What is known of the reference image in an entry's rankings, in a few words.

    Args:
        reference: of a row of a board's table.

    Example:
        >>> reference_words({"used": "kept", "declared": "", "held": 40, "lists": 2017, "members": {}})
        'kept; 40 of 2,017 lists hold it'
    """
    declared = f", declared {reference['declared']}" if reference["declared"] else ""
    if reference["lists"] is None:
        return f"{reference['used'] or 'not known'}{declared}"
    held = f"{reference['held']:,} of {reference['lists']:,} lists hold it"
    own = (f"{name}: {pair[0]:,} of {pair[1]:,}" for name, pair in reference["members"].items() if pair)
    return "; ".join([f"{reference['used']}{declared}", held, *own])


def members_of(signature: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The signatures of a suite's members; of a benchmark its own.

    Args:
        signature: as it is stored.
    """
    found: Sequence[Mapping[str, Any]] = signature.get("members") or [signature]
    return found


def signatures_of(one: Submission) -> Mapping[str, dict[str, Any]]:
    """The signatures of a submission's numbers, as they are stored.

    Args:
        one: scored.
    """
    found: dict[str, dict[str, Any]] = (one.scores or {})["signatures"]
    return found


def comparability(board: Board, one: Submission) -> Comparability:
    """What makes a submission's number comparable on a board.

    Args:
        board: the board.
        one: scored.
    """
    signatures = signatures_of(one)
    keys = (str(signatures[term]["key"]) for term in board.primary_terms)
    return tuple(key if board.dialogue is None else key.partition(USER)[0] for key in keys)


def places(
    board: Board, submissions: Sequence[Submission], current: Comparability | None
) -> list[tuple[Block, str]]:
    """The block of each submission, and why it is not the first, a sentence.

    Args:
        board: the board.
        submissions: what stands on it, in the order in which they came.
        current: the keys that the server would give now, or None where it cannot tell. Where nobody has them,
            those of the latest entry that fits the protocol and skipped no images take their place.
    """
    keys = [comparability(board, one) for one in submissions]
    signatures = [signatures_of(one)[board.primary_terms[0]] for one in submissions]
    found = [_against_protocol(board, signature) for signature in signatures]
    wanted: dict[Block, Comparability | None] = {}
    for block in RANKED:
        fit = [place for place, (own, _) in enumerate(found) if own == block]
        # Whoever skipped images takes nobody's rank: their keys count only where all did.
        whole = [place for place in fit if not _skips_images(signatures[place])]
        wanted[block] = next((keys[place] for place in reversed(whole or fit)), None)
    if current in keys:
        wanted["current"] = current
    for place, (block, _) in enumerate(found):
        if block in RANKED and keys[place] != wanted[block]:
            parts = ", ".join(_differing(keys[place], wanted["current"] or wanted[block] or ()))
            found[place] = "signature", f"It does not compare with the ranked entries: {parts} differs."
    return found


def block_words(board: Board, block: Block) -> str:
    """What stands above a block of a board's table; empty of the first.

    Args:
        board: the board.
        block: which one.

    Example:
        >>> from leaderboard import boards
        >>> block_words(boards.board("fashioniq/val"), "reference")
        'Reference image removed, and this board keeps it: no rank, group or test with the entries above.'
    """
    keeps = board.spec.config.reference == "kept"
    against = ("removed", "keeps") if keeps else ("kept", "removes")
    return {
        "current": "",
        "older_format": "Scored by an earlier version: ranked among themselves until the organisers run  cir "
        f"leaderboard rescore {board.id} --switch",
        "reference": f"Reference image {against[0]}, and this board {against[1]} it: no rank, group or test "
        "with the entries above.",
        "gallery": "Another gallery was evidently ranked than this board's: no rank.",
        "signature": "Scored on other data, with other checks or by another version than this board has now: "
        "no rank.",
    }[block]


def block_mark(block: Block, used: str) -> str:
    """What marks a row of a block in two words; empty of the first.

    Args:
        block: which one.
        used: of the row's reference.
    """
    marks = {"older_format": "older format", "gallery": "other gallery", "signature": "does not compare"}
    return f"reference {used}" if block == "reference" else marks.get(block, "")


def _against_protocol(board: Board, signature: Mapping[str, Any]) -> tuple[Block, str]:
    members = members_of(signature)
    format = min(int(each.get("format", 1)) for each in members)
    if format < FORMAT:
        return "older_format", f"Its signature has format {format}, and new ones {FORMAT}."
    ranked = sorted({str(each["ranked"]) for each in members if each.get("ranked")})
    if ranked:
        return "gallery", f"Its lists evidently rank {', '.join(ranked)} and not the gallery of this board."
    protocol = board.spec.config.reference
    other = [each for each in members if each.get("reference", protocol) in {"kept", "removed"} - {protocol}]
    if other:
        where = f" in {', '.join(str(each['benchmark']) for each in other)}" if board.takes_bundles else ""
        done = f"the reference image was {other[0]['reference']}{where}"
        return "reference", f"Its file declares that {done}; the board has it {protocol}."
    return "current", ""


def _skips_images(signature: Mapping[str, Any]) -> bool:
    return any(SKIPPED_IMAGES in each.get("checks_skipped", ()) for each in members_of(signature))


def _differing(key: Comparability, other: Comparability) -> list[str]:
    """Names of the parts in which two keys differ."""
    pieces, others = (dict.fromkeys(re.split(r"\|| \+ ", "|".join(each))) for each in (key, other))
    differ = [each for each in (*pieces, *others) if (each in pieces) != (each in others)]
    return list(dict.fromkeys(each.partition(":")[0].strip() for each in differ if ":" in each)) or [
        "signature"
    ]


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
        current: as in `places`.
    """
    ordered = sorted((one for one in published if _is_whole(board, one)), key=lambda one: one.number)
    sign = -1.0 if board.primary_direction == "higher" else 1.0
    placed = sorted(
        zip(places(board, ordered, current), ordered, strict=True),
        key=lambda each: (
            BLOCKS.index(each[0][0]),
            is_oracle(each[1].method or {}),
            each[1].baseline,
            sign * round(_value(board, each[1]), _EQUAL_DIGITS),
        ),
    )
    entries: list[Entry] = []
    counts = Counter[Block]()
    for (block, why), one in placed:
        entry = _entry(board, one, block, why)
        if block in RANKED and not (entry.oracle or one.baseline):
            counts[block] += 1
            above = entries[-1] if counts[block] > 1 else entry
            alike = round(above.value, _EQUAL_DIGITS) == round(entry.value, _EQUAL_DIGITS)
            entry = replace(entry, rank=above.rank if counts[block] > 1 and alike else counts[block])
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
    return board.primary_value(board.told(one.scores or {})["metrics"])


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
