"""The signature of an entry, part by part, with what each part says."""

from __future__ import annotations

from dataclasses import dataclass

from cir_datasets.common.yaml import package_yaml
from leaderboard.boards import Board
from leaderboard.store.submission import Submission


@dataclass(frozen=True)
class ShownSignature:
    """A signature.

    Args:
        text: all of it.
        parts: each part, and what it says.
    """

    text: str
    parts: tuple[tuple[str, str], ...]


def signature_of(submission: Submission, board: Board) -> ShownSignature:
    """The signature of what ranks an entry.

    Args:
        submission: the entry, scored.
        board: its board.
    """
    text = str((submission.scores or {})["signatures"][board.primary_terms[0]]["text"])
    return ShownSignature(text, tuple((part, part_meaning(part)) for part in text.split(" | ")))


def part_meaning(part: str) -> str:
    """What a part of a signature says; empty where it is not known.

    Args:
        part: such as `ref:removed`.

    Example:
        >>> part_meaning("skipped:counts")
        'checks that were not made'
    """
    name, colon, _ = part.partition(":")
    meanings: dict[str, str] = package_yaml("leaderboard", "pages/signature_meanings.yaml")
    if colon and name in meanings:
        return meanings[name]
    return "the benchmark or suite, and its version" if "#" in part else ""
