"""Which queries of a board a page goes through: those that methods win or lose, of an aspect, by a turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.browse.queries import OUTCOMES, QueryRows
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
from leaderboard.pages.queries import queries_of

if TYPE_CHECKING:
    from leaderboard.inspection.lists import MemberLists

LONGEST = 100
"""Characters of a search."""


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
        query_id: the query that is looked at.
        methods: the chosen entries; the first two decide what is won and lost, where both have lists.
        asked: what the address chooses, as in `leaderboard.pages.query_page.page`.
    """

    def __init__(
        self,
        board: Board,
        queries: QueryRows,
        query_id: str,
        methods: Sequence[ShownMethod],
        asked: Mapping[str, str],
    ) -> None:
        """Take the choices that there are."""
        self.board, self.queries, self.id, self.k = board, queries, query_id, main_cutoff(board)
        self.several = board.dialogue is not None or queries.longest > 1
        self.unit = "session" if self.several else "query"
        lists = [each.lists for each in methods[:2] if each.lists is not None]
        self._lists = lists if len(lists) == len(methods[:2]) else []
        self.deciding = [each.name for each in methods[: len(self._lists)]]
        self.choices = self._choices()
        self.usual = {"turn": default_turn(board), "member": queries.spec.id}
        self.chosen = {
            name: asked[name] if asked.get(name) in values else self.usual.get(name, "")
            for name, values in self.choices.items()
        }
        self.text = asked.get("q", "").strip()[:LONGEST]
        self.hits = self._hits(self.chosen)
        self.notes = list(self._unknown(asked))

    def _choices(self) -> dict[str, dict[str, str]]:
        """By name in the address the values that there are here, each in words."""
        unit, choices = turn_word(self.board), {}
        if self._lists:
            of_these = [words for hits, words in OUTCOMES.items() if len(hits) == len(self._lists)]
            choices["outcome"] = {"": "All"} | {
                each.replace(" ", "-"): each.capitalize() for each in of_these
            }
        if self.queries.aspects:
            choices["aspect"] = {"": "all"} | {each: each.replace("_", " ") for each in self.queries.aspects}
        if self.several and self._lists:
            longest = max(int(np.diff(each.starts).max()) for each in self._lists)
            choices["turn"] = {ANY: f"any {unit}", LAST: f"the last {unit} alone", "1": f"{unit} 1"}
            choices["turn"] |= {str(each): f"{unit} {each} or before" for each in range(2, longest + 1)}
        if self._lists and all(each.subset_hits is not None for each in self._lists):
            choices["by"] = {each: self._metric(each) for each in ("", SUBSET)}
        if self.board.takes_bundles:
            choices["member"] = {each: each for each in self.board.benchmarks}
        return choices

    def _unknown(self, asked: Mapping[str, str]) -> Iterator[str]:
        """A note on each choice of the address that there is not."""
        shown = {"aspect": "all aspects are shown", "member": f"{self.queries.spec.id} is shown"}
        if self._lists:  # else there are none of these, which another note says
            words = self.choices.get("turn", {}).get(self.chosen.get("turn", ""), "no turn")
            shown |= {"turn": f"{words} decides", "outcome": "all queries are shown"}
            shown["by"] = f"{self._metric('')} decides"
        for name, instead in shown.items():
            value = asked.get(name, "")
            if value not in ("", self.usual.get(name), self.chosen.get(name)):
                yield f"{name}={value[:40]} is not a choice here; {instead}."

    def _hits(self, chosen: Mapping[str, str]) -> list[NDArray[np.bool_]]:
        """Which queries each deciding method hits."""
        if chosen.get("by"):
            return [each.subset_hits for each in self._lists if each.subset_hits is not None]
        return [each.hits(self.k, chosen.get("turn", "")) for each in self._lists]

    def _fitting(self, chosen: Mapping[str, str]) -> NDArray[np.bool_]:
        outcome = chosen.get("outcome", "").replace("-", " ")
        return self.queries.fitting(self.text, chosen.get("aspect", ""), outcome, self.hits)

    def chips(self, name: str) -> Iterator[dict[str, Any]]:
        """The values of a choice: words, how many queries each leaves or hits, and where it leads."""
        names, here = list(self.queries.rows), self.queries.places[self.id]
        for value, words in self.choices.get(name, {}).items():
            chosen, count = {**self.chosen, name: value}, len(names)
            first: str | None = self.id
            if name in ("turn", "by"):
                count = int(self._hits(chosen)[0].sum())
            elif name != "member":
                fits = self._fitting(chosen)
                count = int(fits.sum())
                first = self.id if fits[here] else names[int(fits.argmax())] if count else None
            elif value != self.queries.spec.id:
                others = queries_of(value).rows
                count, first = len(others), next(iter(others))
            current, changes = value == self.chosen[name], {name: value}
            yield {"words": words, "chosen": current, "changes": changes, "count": count, "first": first}

    @property
    def came_out(self) -> str:
        """How this query came out, `lost` say; empty where no method decides."""
        here = self.queries.places[self.id]
        return OUTCOMES.get(tuple(bool(hits[here]) for hits in self.hits), "")

    def step(self) -> dict[str, Any]:
        """The queries beside this one among those that the filter lets through, and where it stands there."""
        fits = self._fitting(self.chosen)
        places, here, names = np.flatnonzero(fits), self.queries.places[self.id], list(self.queries.rows)
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
        words = [
            self.chosen.get(name, "").replace("_", " ").replace("-", " ") for name in ("outcome", "aspect")
        ]
        return [*filter(None, words), *([f"“{self.text}”"] if self.text else [])]

    @property
    def address(self) -> dict[str, str]:
        """What the address chooses; what need not be said is empty, as a mirror has the plain pages alone."""
        said = {name: "" if value == self.usual.get(name) else value for name, value in self.chosen.items()}
        return said | {"q": self.text, "member": self.chosen.get("member", "")}

    @property
    def headline(self) -> str:
        """How often the methods differ, or how often the one hits."""
        metric = f"at {self._metric(self.chosen.get('by', ''))}"
        if len(self.hits) == 2:
            one, other = self.hits
            won, lost = int((one & ~other).sum()), int((other & ~one).sum())
            same = len(one) - won - lost
            return f"Where they differ: {won:,} won, {lost:,} lost, {same:,} same {metric}"
        if len(self.hits) == 1:
            hits = int(self.hits[0].sum())
            return f"{hits:,} hit, {len(self.hits[0]) - hits:,} missed {metric}"
        return f"{self.unit.capitalize()} {self.id}"

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
        turn = self.choices.get("turn", {}).get(self.chosen.get("turn", ""), "").removesuffix(" alone")
        return f"{hit_words(self.board, self.k, f' at {turn}' if turn else '').capitalize()}."
