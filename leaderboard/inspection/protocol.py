"""The protocol check of an entry: what its own lists show, beside what its authors say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leaderboard.boards import Board
from leaderboard.inspection.lists import KeptLists
from leaderboard.standings import UNVERIFIED, Reference


@dataclass(frozen=True)
class ProtocolFinding:
    """One thing that the lists show.

    Args:
        label: what is looked at.
        value: the numbers.
        sentence: what they mean.
        fits: whether that fits the protocol; None where the protocol leaves it to the method.
        entries: ids of entries that are named.
    """

    label: str
    value: str
    sentence: str
    fits: bool | None = None
    entries: tuple[str, ...] = ()


def protocol_findings(
    board: Board,
    lists: KeptLists,
    reference: Reference,
    equals: Sequence[str] = (),
) -> list[ProtocolFinding]:
    """What an entry's lists show, as far as the board reads them; of a suite over all members.

    Args:
        board: its board, an open one.
        lists: the entry's.
        reference: what its signature says of the reference, over the whole lists.
        equals: ids of other entries of the board with the same rankings, from `Server.equals`.
    """
    about = [member.about for member in lists.members]
    keeps = board.spec.config.reference == "kept"
    found = [] if reference.used == "none" else [_of_reference(reference, keeps=keeps)]
    if _total(about, "subsets"):
        found.append(_of_subsets(about))
    return [*found, _of_gallery(about), _of_equals(tuple(equals))]


def _of_reference(reference: Reference, *, keeps: bool) -> ProtocolFinding:
    label = "Reference ranked"
    if reference.held is None or reference.lists is None:
        return ProtocolFinding(label, "not known", "An earlier version scored it, and did not note this.")
    value = f"in {_share(reference.held, reference.lists, 'lists')}"
    said = f" Its owner declares that it was {reference.declared}." if reference.declared else ""
    if reference.unverified:
        return ProtocolFinding(label, value, UNVERIFIED)
    if keeps:
        words = "The protocol keeps the reference image: a list may hold it or leave it out."
        return ProtocolFinding(
            label, value, f"{words}{said}", None if "removed" not in reference.used else False
        )
    shows = "but lists hold it" if reference.held else "and no list holds it"
    words = f"The protocol removes the reference image, {shows}."
    return ProtocolFinding(label, value, f"{words}{said}", not reference.held)


def _of_subsets(about: Sequence[Mapping[str, Any]]) -> ProtocolFinding:
    """Of the queries whose list holds an image of their subset: how many order it as the subset ranking."""
    compared, consistent = _total(about, "subsets_compared"), _total(about, "subsets_consistent")
    others = _total(about, "subsets") - compared
    words = (
        "The list of the gallery has the images of the subset in the order of the subset's own ranking; "
        "images that are not listed come last."
    )
    if consistent < compared:
        words = (
            "In the other queries the subset ranking contradicts the list of the gallery: it puts an "
            "image first that the list ranks lower, or does not hold."
        )
    if others:
        one = f"{others:,} {'query is' if others == 1 else 'queries are'}"
        words += f" {one} not checked, because the list holds no image of the subset."
    value = f"in {_share(consistent, compared, 'queries')}"
    return ProtocolFinding("Subset in the order of the list", value, words)


def _of_gallery(about: Sequence[Mapping[str, Any]]) -> ProtocolFinding:
    label = "Images never ranked"
    shortest = min(int(each["shortest"]) for each in about)
    longest = max(int(each["longest"]) for each in about)
    scored = max((int(each["scored"]) for each in about if each["scored"] is not None), default=None)
    depth = f"{longest:,}" if shortest == longest else f"{shortest:,} to {longest:,}"
    words = f"There are {_total(about, 'lists'):,} lists of {depth} {'image' if depth == '1' else 'images'}."
    if scored is not None and longest > scored:
        words += f" The board scores the first {scored:,} of each."
    if any(each["gallery"] is None for each in about):
        return ProtocolFinding(label, "not known", f"The list of the gallery is not here. {words}")
    value = _share(_total(about, "never_ranked"), _total(about, "gallery"), "images")
    return ProtocolFinding(label, value, words)


def _of_equals(equals: tuple[str, ...]) -> ProtocolFinding:
    label = "Same rankings"
    if not equals:
        return ProtocolFinding(label, "none", "No other entry of this board has identical rankings.")
    return ProtocolFinding(label, "", "These entries of this board have identical rankings.", entries=equals)


def _total(about: Sequence[Mapping[str, Any]], name: str) -> int:
    """A count over all members; subsets are counted only where a benchmark has them."""
    return sum(int(each.get(name, 0)) for each in about)


def _share(part: int, whole: int, noun: str) -> str:
    """Part of a whole in words.

    Example:
        >>> _share(285, 300, "queries"), _share(0, 0, "queries")
        ('285 of 300 queries (95.00 %)', '0 of 0 queries')
    """
    share = f" ({100 * part / whole:.2f} %)" if whole else ""
    return f"{part:,} of {whole:,} {noun}{share}"
