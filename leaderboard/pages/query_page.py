"""A query's page: reference, caption and targets, and what chosen methods rank first for it.

Beside it stands the way through a board's queries: those that one method wins from another, of an aspect, by
a turn of the session. All choices are in the address.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cir_datasets.browse import ShownRanking, images_of, query_card
from leaderboard.boards import Board
from leaderboard.inspection.hits import (
    default_turn,
)
from leaderboard.pages.pictures import picture_path
from leaderboard.pages.queries import QueryRows, hidden_pictures, queries_of, why_hidden
from leaderboard.pages.query_filter import BesideQuery, QueryFilter, ShownMethod
from leaderboard.pages.site import UNREAD, Page, Site, missing_page
from leaderboard.views import group_leaders, method_name

_METHODS = 4
"""Methods that a page shows at most; the first two decide what is won and lost."""
_CHOICES = 200
"""Rows of a board that the form lists."""
_NEAR = 5
"""Ids that are named where an address has one that is not there."""


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


class _Browser(QueryFilter):
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
        self.narrowed = False
        self.methods = [self._checked(each) for each in self._methods(asked.get("e"))]
        super().__init__(board, self.queries, query_id, self.methods, self.notes, asked)

    def _methods(self, chosen: str | None) -> list[ShownMethod]:
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

    def _method(self, submission_id: str, name: str) -> ShownMethod:
        submission = self.site.server.store.submission(submission_id)
        if submission is None:
            return ShownMethod(submission_id, name, None)
        kept = self.site.server.lists.of(submission)
        if kept is None:
            self.notes.append(f"{name}: {UNREAD}")
            return ShownMethod(submission_id, name, None)
        return ShownMethod(submission_id, name, kept.member(self.queries.spec.id))

    def _checked(self, method: ShownMethod) -> ShownMethod:
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
            "query": query_card(row, {self.id: by_turn}, self.k, self.board.right_by, len(shown)),
            "headings": headings,
        }

    def _rounds(self) -> dict[str, Any]:
        """The dialogues of each method, in which every round has a caption of its own."""
        row = self.queries.rows[self.id]
        metrics = self.board.right_by
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
        asked_for, step = self._asked_for(), self.step()
        drawn = bool(images) and any(picture_path(self.queries.spec, image) for image in images)
        values = {
            "board": self.board,
            **card,
            "rounds": dialogue,
            "headline": self.headline(),
            "explained": self.explained(),
            "deciding": [each.name for each in self.deciding],
            "notes": self.notes,
            "outcomes": list(self.outcome_choices()),
            "aspects": list(self.aspect_choices()),
            "turns": list(self.turn_choices()),
            "members": list(self.member_choices()),
            "counted": list(self.by_choices()),
            "asked_for": asked_for,
            "kept": [(name, said) for name, said in asked_for.items() if name != "e" and said],
            "step": step,
            "came_out": self.came_out(self.queries.places[self.id]),
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
            ", ".join([f"{self.id} on {self.board.title}", *self.filter_words()]),
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

    def _choices(self) -> list[tuple[str, str]]:
        chosen = {each.id for each in self.methods}
        return [
            (row["submission"], method_name(row))
            for place, row in enumerate(self.rows)
            if place < _CHOICES or row["submission"] in chosen
        ]

    def _data(self, query: Mapping[str, Any], step: BesideQuery) -> dict[str, Any]:
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
