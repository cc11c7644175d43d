"""The protocol check of an entry: what its own lists show, beside what its authors say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class ProtocolCheck:
    """What an entry's lists show, as far as the board reads them; of a suite over all members.

    Args:
        keeps: whether the protocol keeps the reference image in the ranking.
        reference: what its signature says of the reference, over the whole lists.
        lists: how many lists there are.
        gallery: images of the galleries, or None where one is not known.
        never_ranked: how many of them no list holds; None likewise.
        shortest: images of the shortest list.
        longest: images of the longest.
        scored: images of each list that the board scores, or None where it scores all.
        subsets: queries with a ranking of their subset; 0 on boards without.
        subsets_compared: of these, queries whose list holds an image of the subset: the order is known.
        subsets_consistent: of these, queries where that is the order of the subset ranking.
        equals: ids of other entries of the board with the same rankings.
    """

    keeps: bool
    reference: Reference
    lists: int
    gallery: int | None
    never_ranked: int | None
    shortest: int
    longest: int
    scored: int | None
    subsets: int
    subsets_compared: int
    subsets_consistent: int
    equals: tuple[str, ...]

    def findings(self) -> list[ProtocolFinding]:
        """What the numbers say, a label, a value and a sentence each."""
        found = [self._of_reference()] if self.reference.used != "none" else []
        if self.subsets:
            found.append(self._of_subsets())
        return [*found, self._of_gallery(), self._of_equals()]

    def _of_reference(self) -> ProtocolFinding:
        label, reference = "Reference ranked", self.reference
        if reference.held is None or reference.lists is None:
            return ProtocolFinding(label, "not known", "An earlier version scored it, and did not note this.")
        value = f"in {_share(reference.held, reference.lists, 'lists')}"
        said = f" Its owner declares that it was {reference.declared}." if reference.declared else ""
        if reference.unverified:
            return ProtocolFinding(label, value, UNVERIFIED)
        if self.keeps:
            words = "The protocol keeps the reference image: a list may hold it or leave it out."
            return ProtocolFinding(
                label, value, f"{words}{said}", None if "removed" not in reference.used else False
            )
        shows = "but lists hold it" if reference.held else "and no list holds it"
        words = f"The protocol removes the reference image, {shows}."
        return ProtocolFinding(label, value, f"{words}{said}", not reference.held)

    def _of_subsets(self) -> ProtocolFinding:
        value = f"in {_share(self.subsets_consistent, self.subsets_compared, 'queries')}"
        others = self.subsets - self.subsets_compared
        words = (
            "The list of the gallery has the images of the subset in the order of the subset's own ranking; "
            "images that are not listed come last."
        )
        if self.subsets_consistent < self.subsets_compared:
            words = (
                "In the other queries the subset ranking contradicts the list of the gallery: it puts an "
                "image first that the list ranks lower, or does not hold."
            )
        if others:
            one = f"{others:,} {'query is' if others == 1 else 'queries are'}"
            words += f" {one} not checked, because the list holds no image of the subset."
        return ProtocolFinding("Subset in the order of the list", value, words)

    def _of_gallery(self) -> ProtocolFinding:
        depth = (
            f"{self.longest:,}" if self.shortest == self.longest else f"{self.shortest:,} to {self.longest:,}"
        )
        words = f"There are {self.lists:,} lists of {depth} {'image' if depth == '1' else 'images'}."
        if self.scored is not None and self.longest > self.scored:
            words += f" The board scores the first {self.scored:,} of each."
        if self.gallery is None or self.never_ranked is None:
            return ProtocolFinding(
                "Images never ranked", "not known", f"The list of the gallery is not here. {words}"
            )
        return ProtocolFinding(
            "Images never ranked", _share(self.never_ranked, self.gallery, "images"), words
        )

    def _of_equals(self) -> ProtocolFinding:
        if not self.equals:
            return ProtocolFinding(
                "Same rankings", "none", "No other entry of this board has identical rankings."
            )
        words = "These entries of this board have identical rankings."
        return ProtocolFinding("Same rankings", "", words, entries=self.equals)


def protocol_check(
    board: Board,
    lists: KeptLists,
    reference: Reference,
    equals: Sequence[str] = (),
) -> ProtocolCheck:
    """Check an entry's lists.

    Args:
        board: its board, an open one.
        lists: the entry's.
        reference: from its signature.
        equals: ids of other entries of the board with the same rankings, from `Server.equals`.
    """
    about = [member.about for member in lists.members]

    def total(name: str) -> int:
        return sum(int(each.get(name, 0)) for each in about)

    known = all(each["gallery"] is not None for each in about)
    scored = [int(each["scored"]) for each in about if each["scored"] is not None]
    return ProtocolCheck(
        keeps=board.spec.config.reference == "kept",
        reference=reference,
        lists=total("lists"),
        gallery=total("gallery") if known else None,
        never_ranked=total("never_ranked") if known else None,
        shortest=min(int(each["shortest"]) for each in about),
        longest=max(int(each["longest"]) for each in about),
        scored=max(scored, default=None),
        equals=tuple(equals),
        **{name: total(name) for name in ("subsets", "subsets_compared", "subsets_consistent")},
    )


def _share(part: int, whole: int, noun: str) -> str:
    """Part of a whole in words.

    Example:
        >>> _share(285, 300, "queries"), _share(0, 0, "queries")
        ('285 of 300 queries (95.00 %)', '0 of 0 queries')
    """
    share = f" ({100 * part / whole:.2f} %)" if whole else ""
    return f"{part:,} of {whole:,} {noun}{share}"
