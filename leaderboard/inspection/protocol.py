"""The protocol check of an entry: what its own lists show, beside what its authors say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leaderboard.boards import Board
from leaderboard.inspection.alike import Alike
from leaderboard.inspection.lists import KeptLists
from leaderboard.inspection.making import SHOWN


@dataclass(frozen=True)
class ProtocolFinding:
    """One thing that the lists show.

    Args:
        label: what is looked at.
        value: the numbers.
        sentence: what they mean.
        fits: whether that fits the protocol; None where the protocol leaves it to the method.
    """

    label: str
    value: str
    sentence: str
    fits: bool | None = None


@dataclass(frozen=True)
class ProtocolCheck:
    """What an entry's lists show, as far as the board reads them; of a suite over all members.

    Args:
        reference: whether the protocol keeps the reference image in the ranking.
        lists: how many lists there are.
        lists_with_reference: how many of them answer a query that has a reference image.
        lists_that_rank_it: how many of those hold it.
        gallery: images of the galleries, or None where one is not known.
        never_ranked: how many of them no list holds; None likewise.
        shortest: images of the shortest list.
        longest: images of the longest.
        subsets: queries with a ranking of their subset; 0 on boards without.
        subsets_compared: of these, queries whose list holds two images of the subset ranking or more.
        subsets_consistent: of these, queries where those stand in the order of the subset ranking.
        equals: ids of other entries of the board with the same rankings.
        alike: other entries near its score of whose lists half or more begin as its own do.
    """

    reference: Literal["kept", "removed"]
    lists: int
    lists_with_reference: int
    lists_that_rank_it: int
    gallery: int | None
    never_ranked: int | None
    shortest: int
    longest: int
    subsets: int
    subsets_compared: int
    subsets_consistent: int
    equals: tuple[str, ...]
    alike: tuple[Alike, ...] = ()

    def findings(self) -> list[ProtocolFinding]:
        """What the numbers say, a label, a value and a sentence each."""
        found = [self._of_reference()] if self.lists_with_reference else []
        if self.subsets:
            found.append(self._of_subsets())
        return [*found, self._of_gallery(), self._of_equals(), self._of_alike()]

    def _of_reference(self) -> ProtocolFinding:
        value = f"in {_share(self.lists_that_rank_it, self.lists_with_reference, 'lists')}"
        if self.reference == "kept":
            words = "The protocol keeps the reference image: a list may hold it or leave it out."
            return ProtocolFinding("Reference ranked", value, words)
        if not self.lists_that_rank_it:
            words = "The protocol removes the reference image, and no list holds it."
            return ProtocolFinding("Reference ranked", value, words, True)
        words = "The protocol removes the reference image, but lists hold it."
        return ProtocolFinding("Reference ranked", value, words, False)

    def _of_subsets(self) -> ProtocolFinding:
        value = f"in {_share(self.subsets_consistent, self.subsets_compared, 'queries')}"
        others = self.subsets - self.subsets_compared
        words = (
            "Images of the subset stand in the list of the gallery in the order of the subset's own ranking."
        )
        if self.subsets_consistent < self.subsets_compared:
            words = "The others rank the subset by something else than the gallery."
        if others:
            one = f"{others:,} {'query is' if others == 1 else 'queries are'}"
            words += f" {one} not looked at: fewer than two such images are listed."
        return ProtocolFinding("Subset in the order of the list", value, words)

    def _of_gallery(self) -> ProtocolFinding:
        depth = (
            f"{self.longest:,}" if self.shortest == self.longest else f"{self.shortest:,} to {self.longest:,}"
        )
        words = f"There are {self.lists:,} lists of {depth} {'image' if depth == '1' else 'images'}."
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
                "Same rankings", "none", "No other entry of this board has the very same rankings."
            )
        names = ", ".join(self.equals)
        return ProtocolFinding(
            "Same rankings", names, "These entries of this board have the very same rankings."
        )

    def _of_alike(self) -> ProtocolFinding:
        label = "Lists that begin the same"
        if not self.alike:
            words = f"No entry near its score has the same first {SHOWN} images in half of the lists."
            return ProtocolFinding(label, "none", words)
        named = "; ".join(f"{one.id}: {_share(one.same, one.lists, 'lists')}" for one in self.alike)
        words = (
            f"These entries have the same first {SHOWN} images in the same order: it may be one method, sent "
            "again with few changes."
        )
        return ProtocolFinding(label, named, words)


def protocol_check(
    board: Board, lists: KeptLists, equals: Sequence[str] = (), alike: Sequence[Alike] = ()
) -> ProtocolCheck:
    """Check an entry's lists.

    Args:
        board: its board, an open one.
        lists: the entry's.
        equals: ids of other entries of the board with the same rankings, from `Server.equals`.
        alike: entries whose lists begin as its own do, from `entries_alike`.
    """
    about = [member.about for member in lists.members]

    def total(name: str) -> int:
        return sum(int(each.get(name, 0)) for each in about)

    known = all(each["gallery"] is not None for each in about)
    return ProtocolCheck(
        reference=board.spec.config.reference,
        lists=total("lists"),
        lists_with_reference=total("lists_with_reference"),
        lists_that_rank_it=total("lists_that_rank_it"),
        gallery=total("gallery") if known else None,
        never_ranked=total("never_ranked") if known else None,
        shortest=min(int(each["shortest"]) for each in about),
        longest=max(int(each["longest"]) for each in about),
        subsets=total("subsets"),
        subsets_compared=total("subsets_compared"),
        subsets_consistent=total("subsets_consistent"),
        equals=tuple(equals),
        alike=tuple(alike),
    )


def _share(part: int, whole: int, noun: str) -> str:
    """Part of a whole in words.

    Example:
        >>> _share(285, 300, "queries"), _share(0, 0, "queries")
        ('285 of 300 queries (95.00 %)', '0 of 0 queries')
    """
    share = f" ({100 * part / whole:.2f} %)" if whole else ""
    return f"{part:,} of {whole:,} {noun}{share}"
