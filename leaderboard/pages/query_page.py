"""A query's page: reference, caption and targets, and what chosen methods rank first for it.

Beside it stands the way through a board's queries: those that one method wins from another, of an aspect, by
a turn of the session. All choices are in the address.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.browse import OUTCOMES, ShownRanking, images_of, query_card
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
    right_by,
    turn_word,
)
from leaderboard.pages.pictures import picture_path
from leaderboard.pages.queries import QueryRows, hidden_pictures, queries_of, why_hidden
from leaderboard.pages.site import UNREAD, Page, Site, missing_page
from leaderboard.views import group_leaders, method_name

if TYPE_CHECKING:
    from leaderboard.inspection.lists import MemberLists

_METHODS = 4
"""Methods that a page shows at most; the first two decide what is won and lost."""
_CHOICES = 200
"""Rows of a board that the form lists."""
_NEAR = 5
"""Ids that are named where an address has one that is not there."""


def _outcomes(methods: int) -> dict[str, tuple[bool, ...]]:
    """By the words of the address the hits of so many deciding methods that they stand for."""
    return {words.replace(" ", "-"): hits for hits, words in OUTCOMES.items() if len(hits) == methods}


@dataclass(frozen=True)
class _ShownMethod:
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
class _BesideQuery:
    """The queries beside one, and where it stands.

    Args:
        previous: id of the query before, or None.
        following: id of the query behind, or None.
        position: where this query stands among those of the filter, in words.
    """

    previous: str | None
    following: str | None
    position: str


def page(site: Site, board: Board, query_id: str, asked: Mapping[str, str]) -> Page:
    """The page.

    Args:
        site: of the server.
        board: whose query it is.
        query_id: the query's or session's id.
        asked: what the address chooses: `e` (ids of entries, by commas), `outcome`, `aspect`, `turn`, and of
            a suite `member`; `by=subset` where the first of the subset's ranking decides.
    """
    if hidden := why_hidden(site, board):
        return missing_page("No queries to look at", hidden)
    found = _find(board, query_id, asked.get("member", ""))
    if isinstance(found, list):
        return _unknown(board, query_id, found)
    return _Browser(site, board, found, query_id, asked).page()


def _find(board: Board, query_id: str, member: str) -> QueryRows | list[tuple[str, str]]:
    """The queries among which an id is, or the ids that are nearest to it, each with its benchmark."""
    members = [each for each in board.benchmarks if member in ("", each)] or list(board.benchmarks)
    near: list[tuple[str, str]] = []
    for benchmark in members:
        queries = queries_of(benchmark)
        if query_id in queries.rows:
            return queries
        near += [(each, benchmark) for each in difflib.get_close_matches(query_id, queries.rows, n=_NEAR)]
    return near[:_NEAR]


def _unknown(board: Board, query_id: str, near: Sequence[tuple[str, str]]) -> Page:
    first = board.benchmarks[0]
    return Page(
        "query_missing.html",
        "No such query",
        f"{board.benchmark} has no query {query_id[:80]!r}.",
        {
            "board": board,
            "id": query_id,
            "near": [(each, "" if benchmark == first else benchmark) for each, benchmark in near],
            "first": next(iter(queries_of(first).rows)),
        },
        status=404,
    )


class _Browser:
    """One query's page on its way.

    Args:
        site: as in `page`, and so are the others.
    """

    def __init__(
        self, site: Site, board: Board, queries: QueryRows, query_id: str, asked: Mapping[str, str]
    ) -> None:
        self.site, self.board, self.queries, self.id = site, board, queries, query_id
        self.rows = site.server.tables.of(board).view["rows"]
        self.notes: list[str] = []
        self.waits = self.narrowed = False
        self.methods = [self._checked(each) for each in self._methods(asked.get("e"))]
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
        if self.hits:  # else the lists are still being read, or not shown, which another note says
            taken["outcome"] = (self.outcome, "all queries are shown")
            taken["by"] = (self.by, f"{self._metric(self.by)} decides")
        for name, (value, instead) in taken.items():
            wanted = asked.get(name, "")
            if wanted not in ("", value):
                self.notes.append(f"{name}={wanted[:40]} is not a choice here; {instead}.")

    def _methods(self, chosen: str | None) -> list[_ShownMethod]:
        by_id = {row["submission"]: row for row in self.rows}
        if chosen is None:
            wanted = _default_pair(self.rows)
        else:
            wanted = list(dict.fromkeys(filter(None, map(str.strip, chosen.split(",")))))
            unknown = [each for each in wanted if each not in by_id]
            self.notes += [f"{each[:40]} is not an entry of this board, and is left out." for each in unknown]
            wanted = [each for each in wanted if each in by_id]
            if len(wanted) > _METHODS:
                self.notes.append(f"A page shows {_METHODS} methods; the others are left out.")
        wanted = wanted[:_METHODS]
        names = [method_name(by_id[each]) for each in wanted]
        # Two of one name are distinguished by their ids.
        names = [
            f"{name} ({each})" if names.count(name) > 1 else name
            for each, name in zip(wanted, names, strict=True)
        ]
        return [self._method(each, name) for each, name in zip(wanted, names, strict=True)]

    def _method(self, submission_id: str, name: str) -> _ShownMethod:
        submission = self.site.server.store.submission(submission_id)
        if submission is None:
            return _ShownMethod(submission_id, name, None)
        lists = self.site.server.lists
        kept = lists.of(submission)
        if kept is None:
            if lists.waits(submission):
                self.waits = True
                said = "the lists are being read from the file. This page looks again in ten seconds."
            else:
                said = UNREAD
            self.notes.append(f"{name}: {said}")
            return _ShownMethod(submission_id, name, None)
        return _ShownMethod(submission_id, name, kept.member(self.queries.spec.id))

    def _checked(self, method: _ShownMethod) -> _ShownMethod:
        """A method whose lists are of the queries shown; dialogues may be of some of a benchmark's alone."""
        lists = method.lists
        if lists is None or lists.names == list(self.queries.rows):
            return method
        rows = self.queries.rows
        if self.id in lists.names and not self.narrowed and all(name in rows for name in lists.names):
            self.queries = QueryRows(self.queries.spec, {name: rows[name] for name in lists.names})
            self.narrowed = True
            return method
        self.notes.append(f"{method.name} answers other queries, and is not shown.")
        return replace(method, lists=None)

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
    def deciding(self) -> list[_ShownMethod]:
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

    def _came_out(self, here: int) -> str:
        """How this query came out, `lost` say; empty where no method decides."""
        return OUTCOMES.get(tuple(bool(hits[here]) for hits in self.hits), "")

    def _outcome_choices(self) -> Iterator[dict[str, Any]]:
        if not self.hits:
            return
        for outcome in ("", *_outcomes(len(self.hits))):
            fits = self.fitting(outcome, self.aspect)
            words = outcome.replace("-", " ").capitalize() or "All"
            yield self._choice(words, outcome == self.outcome, {"outcome": outcome}, fits)

    def _aspect_choices(self) -> Iterator[dict[str, Any]]:
        for aspect in ("", *self.queries.aspects) if self.queries.aspects else ():
            fits = self.fitting(self.outcome, aspect)
            yield self._choice(
                aspect.replace("_", " ") or "all", aspect == self.aspect, {"aspect": aspect}, fits
            )

    def _turn_choices(self) -> Iterator[dict[str, Any]]:
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

    def _by_choices(self) -> Iterator[dict[str, Any]]:
        """What counts as a hit; the count is of queries that the first method hits."""
        for by in ("", SUBSET) if self._have_subsets() else ():
            count = int(self._hits(by)[0].sum())
            yield _chip(self._metric(by), by == self.by, {"by": by}, count, self.id)

    def _member_choices(self) -> Iterator[dict[str, Any]]:
        """The members of a suite; each has queries of its own."""
        for benchmark in self.board.benchmarks if self.member else ():
            rows = queries_of(benchmark).rows
            chosen = benchmark == self.member
            first = self.id if chosen else next(iter(rows))
            yield _chip(benchmark, chosen, {"member": benchmark}, len(rows), first)

    def _cards(self) -> dict[str, Any]:
        """The query as templates take it, with the lists of each method; see `query_card`."""
        row = self.queries.rows[self.id]
        shown = [each for each in self.methods if each.lists is not None]
        lists = [each.lists.of(self.id) for each in shown if each.lists is not None]
        turns = len(row.get("turns") or (1,))
        by_turn: list[list[ShownRanking]] = [[each[turn] for each in lists] for turn in range(turns)]
        subsets = [(each.name, each.lists.subset(self.id)) for each in shown if each.lists is not None]
        headings = [each.name for each in shown]
        for name, subset in subsets:
            if subset is not None:
                headings.append(f"{name}: the subset, as far as the file ranks it")
                by_turn[0].append(subset)
        return {
            "query": query_card(row, {self.id: by_turn}, self.k, right_by(self.board), len(shown)),
            "headings": headings,
        }

    def _rounds(self) -> dict[str, Any]:
        """The dialogues of each method, in which every round has a caption of its own."""
        row = self.queries.rows[self.id]
        metrics = right_by(self.board)
        methods = []
        for method in self.methods:
            if method.lists is None:
                continue
            rounds = []
            for each in method.lists.rounds(self.id):
                card = query_card(row, {self.id: [[each.ranking]]}, self.k, metrics, 1)
                rounds.append(
                    {
                        "caption": each.caption,
                        "reference": each.reference,
                        "shown": card["turns"][0]["lists"][0],
                    }
                )
            methods.append({"id": method.id, "name": method.name, "rounds": rounds})
        return {"query": query_card(row, None, 0, metrics), "methods": methods}

    def page(self) -> Page:
        """All of it."""
        dialogue = self.board.dialogue is not None
        card = self._rounds() if dialogue else self._cards()
        query = card["query"]
        query["negatives"] = []
        images = dict.fromkeys(images_of(query))
        for method in card.get("methods", ()):
            for each in method["rounds"]:
                images |= dict.fromkeys(each["shown"]["top"])
        asked_for, step = self._asked_for(), self._step()
        drawn = bool(images) and any(picture_path(self.queries.spec, image) for image in images)
        values = {
            "board": self.board,
            **card,
            "rounds": dialogue,
            "headline": self.headline(),
            "explained": self.explained(),
            "deciding": [each.name for each in self.deciding],
            "notes": self.notes,
            "waits": self.waits,
            "outcomes": list(self._outcome_choices()),
            "aspects": list(self._aspect_choices()),
            "turns": list(self._turn_choices()),
            "members": list(self._member_choices()),
            "counted": list(self._by_choices()),
            "asked_for": asked_for,
            "kept": [(name, said) for name, said in asked_for.items() if name != "e" and said],
            "step": step,
            "came_out": self._came_out(self.queries.places[self.id]),
            "unit": self.unit,
            "pair": [each.id for each in self.methods],
            "choices": self._choices(),
            "marks": _marks(query, card.get("methods", ())),
            "pictures": {image: picture_path(self.queries.spec, image) for image in images},
            "drawn": drawn,
            "pictures_words": "Pictures are drawn by the package." if drawn else hidden_pictures(self.board),
        }
        return Page(
            "query_browser.html",
            ", ".join([f"{self.id} on {self.board.title}", *self._filter_words()]),
            f"A {self.unit} of {self.board.title}, its targets, and what methods rank first: {self.id}"[:160],
            values,
            data=self._data(query, step),
        )

    def _asked_for(self) -> dict[str, str]:
        """What the address chooses; what it need not say is empty, as a mirror has the plain pages alone."""
        chosen = [each.id for each in self.methods]
        return {
            "e": "" if chosen == _default_pair(self.rows) else ",".join(chosen),
            "outcome": self.outcome,
            "aspect": self.aspect,
            "turn": "" if self.turn in ("", default_turn(self.board)) else self.turn,
            "member": self.member if self.asked_member else "",
            "by": self.by,
        }

    def _step(self) -> _BesideQuery:
        """Where the query stands among those that the filter lets through."""
        fits = self.fitting(self.outcome, self.aspect)
        places, here = np.flatnonzero(fits), self.queries.places[self.id]
        names = list(self.queries.rows)
        before, behind = places[places < here], places[places > here]
        position = f"{len(before) + 1:,} of {len(places):,}"
        if not fits[here]:
            position = f"Not among the {len(places):,} of this filter"
        return _BesideQuery(
            names[int(before[-1])] if len(before) else None,
            names[int(behind[0])] if len(behind) else None,
            position,
        )

    def _filter_words(self) -> list[str]:
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

    def _choices(self) -> list[tuple[str, str]]:
        chosen = {each.id for each in self.methods}
        return [
            (row["submission"], method_name(row))
            for place, row in enumerate(self.rows)
            if place < _CHOICES or row["submission"] in chosen
        ]

    def _data(self, query: Mapping[str, Any], step: _BesideQuery) -> dict[str, Any]:
        """The page as JSON values."""
        row = self.queries.rows[self.id]
        methods = []
        for each in self.methods:
            rankings = () if each.lists is None else each.lists.of(self.id)
            said = [
                {"top": list(one.top), "rank": one.rank, "listed": one.listed, "turn": number}
                for number, one in enumerate(rankings, start=1)
            ]
            subset = None if each.lists is None else each.lists.subset(self.id)
            methods.append(
                {
                    "submission": each.id,
                    "name": each.name,
                    "rankings": said,
                    "subset": None if subset is None else {"top": list(subset.top), "rank": subset.rank},
                }
            )
        return {
            "board": self.board.id,
            "benchmark": self.queries.spec.id,
            "id": self.id,
            "row": row,
            "right_answers": query["targets"],
            "k": self.k,
            "turn": self.turn or None,
            "by": self.by or None,
            "outcome": self.outcome or None,
            "aspect": self.aspect or None,
            "position": step.position,
            "previous": step.previous,
            "next": step.following,
            "methods": methods,
        }


def _chip(words: str, chosen: bool, changes: dict[str, str], count: int, first: str | None) -> dict[str, Any]:
    """A choice: its words, how many queries it leaves or hits, and the query that it leads to."""
    return {"words": words, "chosen": chosen, "changes": changes, "count": count, "first": first}


def _marks(query: Mapping[str, Any], methods: Sequence[Mapping[str, Any]]) -> set[str]:
    """The marks that the page has, whose meaning it says."""
    lists = [one for turn in query["turns"] for one in turn["lists"]]
    lists += [each["shown"] for method in methods for each in method["rounds"]]
    found = {kind for one in lists for kind in one["kinds"]}
    return found | ({"good"} if query["targets"] else set()) | ({"right"} if query["positives"] else set())


def _default_pair(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The leaders of the first two groups; where there are fewer groups, the first two rows."""
    leaders = [row["submission"] for row in group_leaders(rows)]
    return leaders[:2] if len(leaders) > 1 else [row["submission"] for row in rows[:2]]
