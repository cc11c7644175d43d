"""Which entries of a board compare: they stand in blocks, and no rank, group or test goes across two.

The first block answers what the board asks. What an earlier version scored, whose signatures say less, is
ranked among itself until it is scored again. The other blocks have no ranks, and each says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from cir_metrics.catalogue import FORMAT, SKIPPED_IMAGES
from leaderboard.boards import Board
from leaderboard.store.submission import Submission
from submissions.transcripts.settings import USER

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
