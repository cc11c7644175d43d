"""Which queries of a board a page goes through: those that methods win or lose, of an aspect, by a turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.browse.queries import Choice, QueryRows
from leaderboard.boards import Board
from leaderboard.inspection.hits import (
    ANY,
    LAST,
    SUBSET,
    SUBSET_HIT,
    counts_target,
    default_turn,
    hit_words,
    main_cutoff,
    turn_word,
)

if TYPE_CHECKING:
    from leaderboard.inspection.lists import MemberLists

_LONGEST = 100
"""Characters of a search."""
_NARROWING = ("outcome", "aspect", "turns")


@dataclass(frozen=True)
class ShownMethod:
    """A chosen entry.

    Args:
        id: of its submission.
        name: of its method.
        lists: what it ranks first, or None where that is not here.
    """

    id: str
    name: str
    lists: MemberLists | None


class QueryFilter:
    """The queries that an address chooses, and where one of them stands among these.

    Args:
        board: whose queries they are.
        queries: of the benchmark.
        methods: the chosen entries; the first two decide what is won and lost, where both have lists.
        asked: what the address chooses, as in `leaderboard.pages.query_page.page`.
    """

    def __init__(
        self, board: Board, queries: QueryRows, methods: Sequence[ShownMethod], asked: Mapping[str, str]
    ) -> None:
        """Take the choices that there are."""
        asked = {**asked, "outcome": asked.get("outcome", "").replace("-", " ")}
        self.board, self.queries, self.k = board, queries, main_cutoff(board)
        self.several = board.dialogue is not None or queries.longest > 1
        self.step_name = turn_word(board)
        self.unit, self.units = ("session", "sessions") if self.several else ("query", "queries")
        lists = [each.lists for each in methods[:2] if each.lists is not None]
        self._lists = lists if len(lists) == len(methods[:2]) else []
        self.deciding = [each.name for each in methods[: len(self._lists)]]
        usual = list(self._deciding())
        self.choices = [_taken(one, asked) for one in usual]
        self.chosen = {one.name: one.chosen for one in self.choices}
        self.hits = self._hits()
        self.choices += [_taken(one, asked) for one in queries.choices(self.hits)]
        self.chosen |= {one.name: one.chosen for one in self.choices}
        self.text = asked.get("q", "").strip()[:_LONGEST]
        self.notes = list(self._unknown(asked))
        self.address = {
            **self.chosen,
            **{one.name: "" for one in usual if one.chosen == self.chosen[one.name]},
            "q": self.text,
            "member": queries.spec.id if asked.get("member") == queries.spec.id else "",
        }
        """What the address chooses; what need not be said is empty, as a mirror has the plain pages alone."""

    def _deciding(self) -> Iterator[Choice]:
        """What decides which queries there are and what is a hit, each with what is taken unasked."""
        if self.board.takes_bundles:
            members = {each: each for each in self.board.benchmarks}
            yield Choice("member", "Member", members, self.queries.spec.id)
        if self.several and self._lists:
            unit, longest = self.step_name, max(int(np.diff(each.starts).max()) for each in self._lists)
            turns = {ANY: f"any {unit}", LAST: f"the last {unit} alone", "1": f"{unit} 1"}
            turns |= {str(each): f"{unit} {each} or before" for each in range(2, longest + 1)}
            yield Choice("turn", "Hit at", turns, default_turn(self.board))
        if self._lists and all(each.subset_hits is not None for each in self._lists):
            yield Choice("by", "Counted by", {each: self._metric(each) for each in ("", SUBSET)})

    def _unknown(self, asked: Mapping[str, str]) -> Iterator[str]:
        """A note on each choice of the address that there is not."""
        by_name = {one.name: one for one in self.choices}
        # Without lists there is no outcome, no turn and no subset to decide, which another note says.
        for name in ("member", "aspect", "turns", *(("outcome", "turn", "by") if self._lists else ())):
            value, here = asked.get(name, ""), by_name.get(name)
            if value in ("", self.queries.spec.id if name == "member" else self.chosen.get(name)):
                continue
            instead = "" if here is None else f"; “{here.options[here.chosen]}” is taken"
            yield f"{name}={value[:40]} is not a choice here{instead}."

    def _hits(self) -> list[NDArray[np.bool_]]:
        """Which queries each deciding method hits."""
        if self.chosen.get("by"):
            return [each.subset_hits for each in self._lists if each.subset_hits is not None]
        return [each.hits(self.k, self.chosen.get("turn", "")) for each in self._lists]

    @property
    def fitting(self) -> NDArray[np.bool_]:
        """Which queries are let through."""
        return self.queries.fitting(self.text, self.chosen, self.hits)

    def outcome(self, query_id: str) -> str:
        """How a query comes out, `lost` say; empty where no method decides."""
        return self.queries.outcomes(self.hits)[self.queries.places[query_id]] if self.hits else ""

    def step(self, query_id: str) -> dict[str, Any]:
        """The queries beside one among those that are let through, and where it stands there."""
        fits, here, names = self.fitting, self.queries.places[query_id], list(self.queries.rows)
        places = np.flatnonzero(fits)
        before, behind = places[places < here], places[places > here]
        position = f"{len(before) + 1:,} of {len(places):,}"
        return {
            "previous": names[int(before[-1])] if len(before) else None,
            "next": names[int(behind[0])] if len(behind) else None,
            "position": position if fits[here] else f"Not among the {len(places):,} of this filter",
        }

    @property
    def narrowed_to(self) -> list[str]:
        """What narrows the queries, in words."""
        words = [self.chosen.get(name, "").replace("_", " ") for name in _NARROWING]
        return [*filter(None, words), *([f"“{self.text}”"] if self.text else [])]

    @property
    def headline(self) -> str:
        """How often the methods differ, or how often the one hits; empty where none decides."""
        metric = f"at {self._metric(self.chosen.get('by', ''))}"
        if len(self.hits) == 2:
            one, other = self.hits
            won, lost = int((one & ~other).sum()), int((other & ~one).sum())
            same = len(one) - won - lost
            return f"Where they differ: {won:,} won, {lost:,} lost, {same:,} same {metric}"
        if len(self.hits) == 1:
            hits = int(self.hits[0].sum())
            return f"{hits:,} hit, {len(self.hits[0]) - hits:,} missed {metric}"
        return ""

    def _metric(self, by: str) -> str:
        if by == SUBSET:
            return "Rs@1"
        recalled = not self.several and counts_target(self.board)
        return f"R@{self.k}" if recalled else f"Hits@{self.k}"

    @property
    def explained(self) -> str:
        """What the headline counts."""
        if not self.hits:
            return ""
        if self.chosen.get("by"):
            return f"{SUBSET_HIT.capitalize()}."
        turns = {one.name: one.options[one.chosen] for one in self.choices}.get("turn", "")
        at = f" at {turns.removesuffix(' alone')}" if turns else ""
        return f"{hit_words(self.board, self.k, at).capitalize()}."


def _taken(one: Choice, asked: Mapping[str, str]) -> Choice:
    """A choice as an address makes it; what there is not is as if it were not asked for."""
    value = asked.get(one.name, "")
    return replace(one, chosen=value) if value in one.options else one
