"""Which queries of a board a page goes through: those that methods win or lose, of an aspect, by a turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.browse import OUTCOMES
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
from leaderboard.pages.queries import QueryRows, queries_of

if TYPE_CHECKING:
    from leaderboard.inspection.lists import MemberLists


def _outcomes(methods: int) -> dict[str, tuple[bool, ...]]:
    """By the words of the address the hits of so many deciding methods that they stand for."""
    return {words.replace(" ", "-"): hits for hits, words in OUTCOMES.items() if len(hits) == methods}


@dataclass(frozen=True)
class ShownMethod:
    """A chosen entry.

    Args:
        id: of its submission.
        name: of its method.
        lists: what it ranks first, or None where that is not known (yet).
    """

    id: str
    name: str
    lists: MemberLists | None


@dataclass(frozen=True)
class BesideQuery:
    """The queries beside one, and where it stands.

    Args:
        previous: id of the query before, or None.
        following: id of the query behind, or None.
        position: where this query stands among those of the filter, in words.
    """

    previous: str | None
    following: str | None
    position: str


class QueryFilter:
    """The queries beside one, by how methods answer them; all choices are in the address.

    Args:
        board: whose queries they are.
        queries: of the benchmark.
        query_id: the query that is looked at.
        methods: the chosen entries; the first two decide what is won and lost.
        notes: sentences on what the address asks for in vain; those of the filter are put behind.
        asked: what the address chooses, as in `leaderboard.pages.query_page.page`.
    """

    def __init__(
        self,
        board: Board,
        queries: QueryRows,
        query_id: str,
        methods: Sequence[ShownMethod],
        notes: list[str],
        asked: Mapping[str, str],
    ) -> None:
        """Take the choices that there are."""
        self.board, self.queries, self.id, self.methods, self.notes = board, queries, query_id, methods, notes
        self.k = main_cutoff(board)
        self.several = board.dialogue is not None or queries.longest > 1
        self.unit = "session" if self.several else "query"
        self.turn = self._turn(asked.get("turn", ""))
        self.by = SUBSET if asked.get("by") == SUBSET and self._have_subsets() else ""
        self.hits = self._hits(self.by)
        self.outcome = (
            asked.get("outcome", "") if asked.get("outcome", "") in _outcomes(len(self.hits)) else ""
        )
        self.aspect = asked.get("aspect", "") if asked.get("aspect", "") in queries.aspects else ""
        self._say_unknown(asked)
        self.member = queries.spec.id if board.takes_bundles else ""
        self.asked_member = asked.get("member") == self.member

    def _say_unknown(self, asked: Mapping[str, str]) -> None:
        """A note on each choice of the address that there is not."""
        unit = turn_word(self.board)
        turns = {"": f"it has no {unit}s", ANY: f"any {unit} decides", LAST: f"the last {unit} decides"}
        taken = {
            "aspect": (self.aspect, "all aspects are shown"),
            "turn": (self.turn, turns.get(self.turn, f"{unit} {self.turn} decides")),
            "member": (self.queries.spec.id, f"{self.queries.spec.id} is shown"),
        }
        if self.hits:  # else there are no lists, which another note says
            taken["outcome"] = (self.outcome, "all queries are shown")
            taken["by"] = (self.by, f"{self._metric(self.by)} decides")
        for name, (value, instead) in taken.items():
            wanted = asked.get(name, "")
            if wanted not in ("", value):
                self.notes.append(f"{name}={wanted[:40]} is not a choice here; {instead}.")

    def _have_subsets(self) -> bool:
        lists = [each.lists for each in self.deciding]
        return bool(lists) and all(each is not None and each.subset_hits is not None for each in lists)

    def _hits(self, by: str) -> list[NDArray[np.bool_]]:
        """Which queries each deciding method hits."""
        lists = [each.lists for each in self.deciding if each.lists is not None]
        if by != SUBSET:
            return [each.hits(self.k, self.turn) for each in lists]
        return [each.subset_hits for each in lists if each.subset_hits is not None]

    @property
    def deciding(self) -> Sequence[ShownMethod]:
        """The methods that decide what is won and lost: the first two, where both have lists."""
        first = self.methods[:2]
        return first if all(each.lists is not None for each in first) else []

    def _turn(self, asked: str) -> str:
        if not self.several:
            return ""
        numbers = [str(number) for number in range(1, self._turns() + 1)]
        if asked in (ANY, LAST, *numbers):
            return asked
        return default_turn(self.board)

    def _turns(self) -> int:
        if self.board.dialogue is None:
            return self.queries.longest
        longest = [int(np.diff(each.lists.starts).max()) for each in self.methods if each.lists is not None]
        return max(longest, default=1)

    def fitting(self, outcome: str, aspect: str) -> NDArray[np.bool_]:
        """Which queries a filter lets through."""
        fits = np.ones(len(self.queries.rows), dtype=np.bool_)
        if aspect:
            fits &= self.queries.aspects[aspect]
        if outcome:
            for hits, wanted in zip(self.hits, _outcomes(len(self.hits))[outcome], strict=True):
                fits &= hits == wanted
        return fits

    def _choice(
        self, words: str, chosen: bool, changes: dict[str, str], fits: NDArray[np.bool_]
    ) -> dict[str, Any]:
        """A choice of a filter: its words, how many queries it leaves, and where it leads."""
        places = np.flatnonzero(fits)
        first = None
        if len(places):
            here = self.queries.places[self.id]
            first = self.id if fits[here] else list(self.queries.rows)[int(places[0])]
        return _chip(words, chosen, changes, len(places), first)

    def came_out(self, here: int) -> str:
        """How this query came out, `lost` say; empty where no method decides."""
        return OUTCOMES.get(tuple(bool(hits[here]) for hits in self.hits), "")

    def outcome_choices(self) -> Iterator[dict[str, Any]]:
        """How the deciding methods come out."""
        if not self.hits:
            return
        for outcome in ("", *_outcomes(len(self.hits))):
            fits = self.fitting(outcome, self.aspect)
            words = outcome.replace("-", " ").capitalize() or "All"
            yield self._choice(words, outcome == self.outcome, {"outcome": outcome}, fits)

    def aspect_choices(self) -> Iterator[dict[str, Any]]:
        """The aspects of the benchmark's queries."""
        for aspect in ("", *self.queries.aspects) if self.queries.aspects else ():
            fits = self.fitting(self.outcome, aspect)
            yield self._choice(
                aspect.replace("_", " ") or "all", aspect == self.aspect, {"aspect": aspect}, fits
            )

    def turn_choices(self) -> Iterator[dict[str, Any]]:
        """Which turn decides; the count is of queries that the first method hits by then."""
        if not self.several or not self.hits:
            return
        unit, lists = turn_word(self.board), self.deciding[0].lists
        named = {ANY: f"any {unit}", LAST: f"the last {unit} alone"}
        named |= {
            str(number): f"{unit} {number}" + (" or before" if number > 1 else "")
            for number in range(1, self._turns() + 1)
        }
        for turn, words in named.items():
            count = 0 if lists is None else int(lists.hits(self.k, turn).sum())
            yield _chip(words, turn == self.turn, {"turn": turn}, count, self.id)

    def by_choices(self) -> Iterator[dict[str, Any]]:
        """What counts as a hit; the count is of queries that the first method hits."""
        for by in ("", SUBSET) if self._have_subsets() else ():
            count = int(self._hits(by)[0].sum())
            yield _chip(self._metric(by), by == self.by, {"by": by}, count, self.id)

    def member_choices(self) -> Iterator[dict[str, Any]]:
        """The members of a suite; each has queries of its own."""
        for benchmark in self.board.benchmarks if self.member else ():
            rows = queries_of(benchmark).rows
            chosen = benchmark == self.member
            first = self.id if chosen else next(iter(rows))
            yield _chip(benchmark, chosen, {"member": benchmark}, len(rows), first)

    def step(self) -> BesideQuery:
        """Where the query stands among those that the filter lets through."""
        fits = self.fitting(self.outcome, self.aspect)
        places, here = np.flatnonzero(fits), self.queries.places[self.id]
        names = list(self.queries.rows)
        before, behind = places[places < here], places[places > here]
        position = f"{len(before) + 1:,} of {len(places):,}"
        if not fits[here]:
            position = f"Not among the {len(places):,} of this filter"
        return BesideQuery(
            names[int(before[-1])] if len(before) else None,
            names[int(behind[0])] if len(behind) else None,
            position,
        )

    def filter_words(self) -> list[str]:
        """What narrows the queries, for the window's title."""
        return [each.replace("_", " ").replace("-", " ") for each in (self.outcome, self.aspect) if each]

    def headline(self) -> str:
        """How often the methods differ, or how often the one hits."""
        metric = f"at {self._metric(self.by)}"
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

    def explained(self) -> str:
        """What the headline counts."""
        names = [each.name for each in self.deciding]
        if not names or not self.hits:
            return ""
        if self.by == SUBSET:
            return f"{SUBSET_HIT.capitalize()}."
        unit = turn_word(self.board)
        where = {ANY: f" at any {unit}", LAST: f" at the last {unit}"}.get(
            self.turn, f" at {unit} {self.turn}" + (" or before" if self.turn not in ("", "1") else "")
        )
        return f"{hit_words(self.board, self.k, where if self.several else '').capitalize()}."


def _chip(words: str, chosen: bool, changes: dict[str, str], count: int, first: str | None) -> dict[str, Any]:
    """A choice: its words, how many queries it leaves or hits, and the query that it leads to."""
    return {"words": words, "chosen": chosen, "changes": changes, "count": count, "first": first}
