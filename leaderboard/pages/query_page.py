"""A query's page: reference, caption and targets, and what chosen methods rank first for it.

Beside it stands the way through a board's queries: those that one method wins from another, of an aspect, by
a turn of the session. All choices are in the address.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.browse import ShownRanking, images_of, query_card
from cir_metrics.catalogue import parse_metric
from leaderboard.boards import Board
from leaderboard.inspection.making import right_by
from leaderboard.inspection.numbers import main_cutoff
from leaderboard.inspection.reports import benchmark_here
from leaderboard.pages.board_queries import are_prepared
from leaderboard.pages.pictures import picture_path
from leaderboard.pages.site import Page, Site, missing_page, query_path
from submissions.scoring.score_report import member_metric

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.records import Row
    from leaderboard.inspection.lists import MemberLists

_METHODS = 4
"""Methods that a page shows at most; the first two decide what is won and lost."""
_CHOICES = 200
"""Rows of a board that the form lists."""
_NEAR = 5
_BENCHMARKS = 8
"""Benchmarks whose rows are kept in memory."""
_OUTCOMES: dict[int, dict[str, tuple[bool, ...]]] = {
    1: {"hit": (True,), "miss": (False,)},
    2: {
        "won": (True, False),
        "lost": (False, True),
        "both-hit": (True, True),
        "both-miss": (False, False),
    },
}
"""By how many methods decide: the words of the address, and the hits that they stand for."""
_WORDS = {
    "hit": "Hit",
    "miss": "Miss",
    "won": "Won",
    "lost": "Lost",
    "both-hit": "Both hit",
    "both-miss": "Both miss",
}
SUBSET = "subset"
"""What decides in the place of the list of the gallery: the first of the subset's ranking."""
ANY, LAST = "any", "last"
"""Turns that decide, besides a number: a hit at any turn counts, or one at the last turn alone."""


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
class _QueryRows:
    """The rows of a benchmark by id, in its order."""

    spec: BenchmarkSpec
    rows: Mapping[str, Row]

    @functools.cached_property
    def aspects(self) -> Mapping[str, NDArray[np.bool_]]:
        """By aspect which queries have it, the most frequent first."""
        named = [set(row.get("aspects") or ()) for row in self.rows.values()]
        known = sorted(set().union(*named))
        found = {aspect: np.array([aspect in each for each in named]) for aspect in known}
        return dict(sorted(found.items(), key=lambda item: -int(item[1].sum())))

    @functools.cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each id."""
        return {name: place for place, name in enumerate(self.rows)}

    @functools.cached_property
    def longest(self) -> int:
        """Turns of the longest session; 1 where there are none."""
        return max((len(row.get("turns") or (1,)) for row in self.rows.values()), default=1)


def queries_of(benchmark_id: str) -> _QueryRows:
    """The queries of a benchmark that is prepared here.

    Args:
        benchmark_id: its id; nothing is fetched for it where `leaderboard.data.problem` says nothing.
    """
    return _rows_of(benchmark_id, benchmark_here(benchmark_id).data_hash)


@functools.lru_cache(_BENCHMARKS)
def _rows_of(benchmark_id: str, _data_hash: str) -> _QueryRows:
    benchmark = benchmark_here(benchmark_id)
    return _QueryRows(benchmark.spec, dict(zip(benchmark.query_ids, benchmark.rows(), strict=True)))


def page(site: Site, board: Board, query_id: str, asked: Mapping[str, str]) -> Page:
    """The page.

    Args:
        site: of the server.
        board: whose query it is.
        query_id: the query's or session's id.
        asked: what the address chooses: `e` (ids of entries, by commas), `outcome`, `aspect`, `turn`, and of
            a suite `member`; `by=subset` where the first of the subset's ranking decides.
    """
    if board.sealed:
        return missing_page(
            "No queries to look at",
            f"The board {board.title} is sealed: its queries and what is right for them are not shown.",
        )
    problem = site.server.tables.problem(board)
    if problem is not None:
        return missing_page(
            "No queries to look at", f"The queries of {board.title} cannot be shown here: {problem}"
        )
    if not are_prepared(board):
        return missing_page(
            "No queries to look at",
            f"The queries of {board.title} are not prepared on this server.",
            f"Its organiser prepares them: cir datasets prepare {' '.join(board.benchmarks)}.",
        )
    found = _find(board, query_id, asked.get("member", ""))
    if isinstance(found, list):
        return _unknown(board, query_id, found)
    return _Browser(site, board, found, query_id, asked).page()


def _find(board: Board, query_id: str, member: str) -> _QueryRows | list[str]:
    """The queries among which an id is, or the ids that are nearest to it."""
    members = [each for each in board.benchmarks if member in ("", each)] or list(board.benchmarks)
    near: list[str] = []
    for benchmark in members:
        queries = queries_of(benchmark)
        if query_id in queries.rows:
            return queries
        near += difflib.get_close_matches(query_id, queries.rows, n=_NEAR)
        near += list(queries.rows)[:1]
    return list(dict.fromkeys(near))[:_NEAR]


def _unknown(board: Board, query_id: str, near: Sequence[str]) -> Page:
    return Page(
        "query_missing.html",
        "No such query",
        f"{board.benchmark} has no query {query_id[:80]!r}.",
        {"board": board, "id": query_id, "near": near},
        status=404,
    )


class _Browser:
    """One query's page on its way.

    Args:
        site: as in `page`, and so are the others.
    """

    def __init__(
        self, site: Site, board: Board, queries: _QueryRows, query_id: str, asked: Mapping[str, str]
    ) -> None:
        self.site, self.board, self.queries, self.id = site, board, queries, query_id
        self.rows = site.server.tables.of(board).view["rows"]
        self.notes: list[str] = []
        self.waits = self.narrowed = False
        self.methods = [self._checked(each) for each in self._methods(asked.get("e"))]
        self.k = main_cutoff(board)
        self.several = board.dialogue is not None or queries.longest > 1
        self.turn = self._turn(asked.get("turn", ""))
        self.by = SUBSET if asked.get("by") == SUBSET and self._have_subsets() else ""
        self.hits = [self._hits(each.lists, self.by) for each in self.deciding]
        outcomes = _OUTCOMES.get(len(self.hits), {})
        self.outcome = asked.get("outcome", "") if asked.get("outcome", "") in outcomes else ""
        self.aspect = asked.get("aspect", "") if asked.get("aspect", "") in queries.aspects else ""
        self.member = queries.spec.id if board.suite is not None else ""
        self.asked_member = asked.get("member") == self.member

    def _methods(self, chosen: str | None) -> list[_ShownMethod]:
        by_id = {row["submission"]: row for row in self.rows}
        if chosen is None:
            wanted = default_pair(self.rows)
        else:
            wanted = list(dict.fromkeys(filter(None, map(str.strip, chosen.split(",")))))
            unknown = [each for each in wanted if each not in by_id]
            self.notes += [f"{each[:40]} is not an entry of this board, and is left out." for each in unknown]
            wanted = [each for each in wanted if each in by_id]
            if len(wanted) > _METHODS:
                self.notes.append(f"A page shows {_METHODS} methods; the others are left out.")
        wanted = wanted[:_METHODS]
        names = [str(by_id[each]["method"].get("name", "unnamed")) for each in wanted]
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
        kept = self.site.server.lists.of(submission)
        if kept is None:
            self.waits = True
            self.notes.append(
                f"The lists of {name} are being read from its file. This page looks again in ten seconds."
            )
            return _ShownMethod(submission_id, name, None)
        return _ShownMethod(submission_id, name, kept.member(self.queries.spec.id))

    def _checked(self, method: _ShownMethod) -> _ShownMethod:
        """A method whose lists are of the queries shown; dialogues may be of some of a benchmark's alone."""
        lists = method.lists
        if lists is None or lists.names == list(self.queries.rows):
            return method
        rows = self.queries.rows
        if self.id in lists.names and not self.narrowed and all(name in rows for name in lists.names):
            self.queries = _QueryRows(self.queries.spec, {name: rows[name] for name in lists.names})
            self.narrowed = True
            return method
        self.notes.append(f"{method.name} answers other queries, and is not shown.")
        return replace(method, lists=None)

    def _have_subsets(self) -> bool:
        lists = [each.lists for each in self.deciding]
        return bool(lists) and all(each is not None and each.subset_ranks is not None for each in lists)

    def _hits(self, lists: MemberLists | None, by: str) -> NDArray[np.bool_]:
        return subset_hits(lists) if by == SUBSET else hits_by(lists, self.k, self.turn)

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
            for hits, wanted in zip(self.hits, _OUTCOMES[len(self.hits)][outcome], strict=True):
                fits &= hits == wanted
        return fits

    def _choice(
        self, words: str, chosen: bool, changes: dict[str, str], fits: NDArray[np.bool_]
    ) -> dict[str, Any]:
        """A choice of a filter: its words, how many queries it leaves, and where it leads."""
        places = np.flatnonzero(fits)
        here = self.queries.places[self.id]
        first = None
        if len(places):
            first = self.id if fits[here] else list(self.queries.rows)[int(places[0])]
        return {
            "words": words,
            "chosen": chosen,
            "changes": changes,
            "count": len(places),
            "first": first,
        }

    def _came_out(self, here: int) -> str:
        """How this query came out, `lost` say; empty where no method decides."""
        found = tuple(bool(hits[here]) for hits in self.hits)
        outcomes = _OUTCOMES.get(len(self.hits), {})
        return next((_WORDS[name].lower() for name, hits in outcomes.items() if hits == found), "")

    def _outcome_choices(self) -> Iterator[dict[str, Any]]:
        if not self.hits:
            return
        for outcome in ("", *_OUTCOMES[len(self.hits)]):
            fits = self.fitting(outcome, self.aspect)
            words = _WORDS.get(outcome, "All")
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
        unit = "round" if self.board.dialogue is not None else "turn"
        named = {ANY: f"any {unit}", LAST: f"the last {unit} alone"}
        named |= {
            str(number): f"{unit} {number}" + (" or before" if number > 1 else "")
            for number in range(1, self._turns() + 1)
        }
        for turn, words in named.items():
            hits = hits_by(self.deciding[0].lists, self.k, turn)
            here = {
                "words": words,
                "chosen": turn == self.turn,
                "changes": {"turn": turn},
                "count": int(hits.sum()),
            }
            yield {**here, "first": self.id}

    def _by_choices(self) -> Iterator[dict[str, Any]]:
        """What counts as a hit; the count is of queries that the first method hits."""
        for by in ("", SUBSET) if self._have_subsets() else ():
            yield {
                "words": self._metric(by),
                "chosen": by == self.by,
                "changes": {"by": by},
                "count": int(self._hits(self.deciding[0].lists, by).sum()),
                "first": self.id,
            }

    def _member_choices(self) -> Iterator[dict[str, Any]]:
        """The members of a suite; each has queries of its own."""
        for benchmark in self.board.benchmarks if self.member else ():
            rows = queries_of(benchmark).rows
            chosen = benchmark == self.member
            yield {
                "words": benchmark,
                "chosen": chosen,
                "changes": {"member": benchmark},
                "count": len(rows),
                "first": self.id if chosen else next(iter(rows)),
            }

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
        fits = self.fitting(self.outcome, self.aspect)
        places = np.flatnonzero(fits)
        here = self.queries.places[self.id]
        names = list(self.queries.rows)
        before, behind = places[places < here], places[places > here]
        previous = names[int(before[-1])] if len(before) else None
        following = names[int(behind[0])] if len(behind) else None
        chosen = [each.id for each in self.methods]
        # What an address need not say is left out: a mirror has the pages without choices.
        asked_for = {
            "e": "" if chosen == default_pair(self.rows) else ",".join(chosen),
            "outcome": self.outcome,
            "aspect": self.aspect,
            "turn": "" if self.turn in ("", default_turn(self.board)) else self.turn,
            "member": self.member if self.asked_member else "",
            "by": self.by,
        }
        position = f"{len(before) + 1:,} of {len(places):,}"
        if not fits[here]:
            position = f"Not among the {len(places):,} of this filter"
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
            "previous": previous,
            "following": following,
            "position": position,
            "came_out": self._came_out(here),
            "pair": chosen,
            "choices": self._choices(),
            "marks": _marks(query, card.get("methods", ())),
            "pictures": {image: picture_path(self.queries.spec, image) for image in images},
            "drawn": drawn,
            "pictures_words": "Pictures are drawn by the package."
            if drawn
            else "Images are shown by their ids: the pictures are their publisher's.",
        }
        return Page(
            "query_browser.html",
            ", ".join([f"{self.id} on {self.board.title}", *self._filter_words()]),
            f"A query of {self.board.title}, what is right for it, and what methods rank first: {self.id}"[
                :160
            ],
            values,
            data=self._data(query, position, previous, following),
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
        return f"Query {self.id}"

    def _metric(self, by: str) -> str:
        if by == SUBSET:
            return "Rs@1"
        recalled = not self.several and _counts_target(self.board)
        return f"R@{self.k}" if recalled else f"Hits@{self.k}"

    def explained(self) -> str:
        """What the headline counts."""
        names = [each.name for each in self.deciding]
        if not names or not self.hits:
            return ""
        if self.by == SUBSET:
            return f"{SUBSET_HIT.capitalize()}."
        unit = "round" if self.board.dialogue is not None else "turn"
        where = {ANY: f" at any {unit}", LAST: f" at the last {unit}"}.get(
            self.turn, f" at {unit} {self.turn}" + (" or before" if self.turn not in ("", "1") else "")
        )
        return f"{hit_words(self.board, self.k, where if self.several else '').capitalize()}."

    def _choices(self) -> list[tuple[str, str]]:
        chosen = {each.id for each in self.methods}
        return [
            (row["submission"], str(row["method"].get("name", "unnamed")))
            for place, row in enumerate(self.rows)
            if place < _CHOICES or row["submission"] in chosen
        ]

    def _data(
        self, query: Mapping[str, Any], position: str, previous: str | None, following: str | None
    ) -> dict[str, Any]:
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
            "position": position,
            "previous": previous,
            "next": following,
            "methods": methods,
        }


def _marks(query: Mapping[str, Any], methods: Sequence[Mapping[str, Any]]) -> set[str]:
    """The marks that the page has, whose meaning it says."""
    lists = [one for turn in query["turns"] for one in turn["lists"]]
    lists += [each["shown"] for method in methods for each in method["rounds"]]
    found = {kind for one in lists for kind in one["kinds"]}
    return found | ({"good"} if query["targets"] else set()) | ({"right"} if query["positives"] else set())


def hits_by(lists: MemberLists | None, k: int, turn: str) -> NDArray[np.bool_]:
    """Whether each query was hit, shape (queries,).

    Args:
        lists: of a method.
        k: a hit has what `answer_words` names among the first k.
        turn: `any`, `last`, or the number of a turn: a hit at this turn or before counts, as in Hits@K; empty
            of single queries.
    """
    if lists is None:
        return np.zeros(0, dtype=np.bool_)
    if turn == LAST:
        return lists.hits(k)
    hits = (lists.ranks > 0) & (lists.ranks <= k)
    if turn not in ("", ANY):
        numbers = np.arange(len(hits)) - np.repeat(lists.starts[:-1], np.diff(lists.starts))
        hits &= numbers < int(turn)
    found: NDArray[np.bool_] = np.logical_or.reduceat(hits, lists.starts[:-1])
    return found


SUBSET_HIT = "a hit has the target first in its subset"


def subset_hits(lists: MemberLists | None) -> NDArray[np.bool_]:
    """Whether the target is the first of each query's subset, shape (queries,); empty without subsets.

    Args:
        lists: of a method.
    """
    ranks = None if lists is None else lists.subset_ranks
    return np.zeros(0, dtype=np.bool_) if ranks is None else ranks == 1


def _counts_target(board: Board) -> bool:
    """Whether the target alone makes a hit of a single query, as in `right_answers`."""
    return any(metric.startswith("recall@") for metric in right_by(board))


def answer_words(board: Board) -> str:
    """What counts as right on a board, as `right_answers` has it.

    Args:
        board: of single queries, sessions or dialogues.
    """
    if board.dialogue is not None:
        return "the target" if right_by(board) else "a right picture"
    if board.spec.kind == "multi_turn":
        return "a target"
    return "the target" if _counts_target(board) else "a positive"


def hit_words(board: Board, k: int, where: str = "") -> str:
    """What a hit is, in words.

    Args:
        board: the board.
        k: the cutoff.
        where: at which turn, in words.
    """
    hit = f"a hit has {answer_words(board)} among its first {k}{where}"
    if board.dialogue is not None or board.spec.kind == "multi_turn":
        return hit
    if not _counts_target(board):
        return f"{hit}; each positive is marked as a target here"
    # Where a query has one right picture, there is no other.
    several = any(metric.startswith(("map@", "pnr_map@")) for metric in board.spec.metrics)
    return f"{hit}; other right pictures do not count" if several else hit


def default_turn(board: Board) -> str:
    """The turn that decides where the address names none, as what ranks says it."""
    metric, _ = parse_metric(member_metric(board.primary_terms[0]))
    return LAST if metric == "final_recall" else ANY


def default_pair(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The leaders of the first two groups; where there are fewer groups, the first two rows."""
    leaders: dict[int, str] = {}
    for row in rows:
        if row["group"] is not None:
            leaders.setdefault(row["group"], row["submission"])
    found = [leaders[number] for number in sorted(leaders)][:2]
    if len(found) < 2:
        found = [row["submission"] for row in rows][:2]
    return found


def first_query(site: Site, board: Board) -> str:
    """Path of a board's first query, or empty where its queries cannot be shown here."""
    if board.sealed or site.server.tables.problem(board) is not None or not are_prepared(board):
        return ""
    return query_path(board.id, next(iter(queries_of(board.benchmarks[0]).rows)))
