"""The browser of a board's queries: a page of those that a filter lets through, or one with methods' lists.

It is the browser that `cir datasets browse` writes, with a server behind it: all choices are in the address.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from cir_datasets.browse import PAGE_QUERIES
from cir_datasets.browse.pictures import publishers_address
from cir_datasets.browse.queries import QueryRows, QueryView, ShownRanking
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.pages.board.table import linked_pages
from leaderboard.pages.pictures import hosted_path, picture_path
from leaderboard.pages.queries import hidden_pictures, queries_of, why_hidden
from leaderboard.pages.query_filter import QueryFilter, ShownMethod
from leaderboard.pages.site import COCO_POLICY, PAGE_POLICY, UNREAD, Page, Site, missing_page, query_path
from leaderboard.standings.views import group_leaders, method_name

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec

_METHODS = 4
"""Methods that a page shows at most; the first two decide what is won and lost."""
_CHOICES = 200
"""Rows of a board that the form lists."""
_NEAR = 5
"""Ids that are named where an address has one that is not there."""


def page(site: Site, asked: Mapping[str, str], board_id: str, query_id: str) -> Page:
    """The page of one query or session, with what methods rank first for it.

    Args:
        site: of the server.
        asked: what the address chooses: `e` (ids of entries, by commas), `outcome`, `aspect`, `turns`,
            `turn`, and of a suite `member`; `q`, a text of captions and ids; `by=subset` where the first of
            the subset's ranking decides; `pictures=publisher` where the publisher's server is to show them.
        board_id: of whose query it is.
        query_id: the query's or session's id.
    """
    board = boards.board(board_id)
    if hidden := why_hidden(site, board):
        return missing_page("No queries to look at", hidden)
    found = _find(board, query_id, asked.get("member", ""))
    if not isinstance(found, QueryRows):
        words = f"{board.benchmark} has no query {query_id[:80]!r}."
        near = [(query_path(board.id, each), each) for each in found]
        return missing_page("No such query", words, near=near)
    methods, narrow, notes = _chosen(site, board, found, asked, query_id)
    cards, headings = _cards(board, narrow.queries, query_id, methods)
    values, policy = _values(site, narrow, methods, cards, asked)
    values |= {"one": query_id, "tab": "", "about": "", "pages": (), "notes": notes, "headings": headings}
    values |= {"step": narrow.step(query_id), "outcome": narrow.outcome(query_id)}
    return Page(
        "query_browser.html",
        ", ".join([f"{query_id} on {board.title}", *narrow.narrowed_to]),
        f"A {narrow.unit} of {board.title}, its targets, and what methods rank first: {query_id}"[:160],
        values,
        policy=policy,
        data=_data(narrow, query_id, cards[0][0], methods),
    )


def tab(site: Site, board: Board, asked: Mapping[str, str], tabs: Mapping[str, str]) -> Page:
    """The tab of a board's page that lists its queries.

    Args:
        site: of the server.
        board: one for which `why_hidden` says nothing.
        asked: as for `page`, and `page`.
        tabs: the board's, from `leaderboard.pages.board.tabs.tabs_here`.
    """
    member = asked.get("member", "")
    queries = queries_of(member if member in board.benchmarks else board.benchmarks[0])
    methods, narrow, notes = _chosen(site, board, queries, asked)
    names, said = list(narrow.queries.rows), asked.get("page", "")
    fitting = [names[place] for place in np.flatnonzero(narrow.fitting)]
    pages = max(1, -(-len(fitting) // PAGE_QUERIES))
    here = min(max(int(said), 1), pages) if said.isdecimal() and len(said) < 10 else 1
    if said not in ("", str(here)):
        notes.append(f"page={said[:40]} is not a choice here; page {here} of {pages} is shown.")
    first = (here - 1) * PAGE_QUERIES
    cards = [
        (QueryView.of(narrow.queries.rows[name], board.right_by).in_short, query_path(board.id, name))
        for name in fitting[first : first + PAGE_QUERIES]
    ]
    values, policy = _values(site, narrow, methods, cards, asked)
    values |= {
        "one": "",
        "headings": (),
        "notes": notes,
        "path": f"b/{quote(board.id)}",
        "tab": "queries",
        "tabs": tabs,
        "about": _counted(len(fitting), len(names), first, narrow),
        "pages": [(each, each == here) for each in linked_pages(here, pages)] if pages > 1 else (),
    }
    chosen = [values["asked_for"]["member"], *narrow.narrowed_to, f"page {here}" if here > 1 else ""]
    title = ", ".join([f"{board.title}: {narrow.units}", *filter(None, chosen)])
    about = f"The {narrow.units} of {board.title}, each with what methods rank first for it."
    return Page("query_browser.html", title, about, values, policy=policy)


def _counted(matching: int, total: int, first: int, narrow: QueryFilter) -> str:
    """How many there are, and which of them stand here."""
    whole = f"{total:,} {narrow.unit if total == 1 else narrow.units}"
    among = whole if matching == total else f"{matching:,} of {whole}"
    if matching <= PAGE_QUERIES:
        return f"{among}."
    return f"{first + 1:,} to {min(first + PAGE_QUERIES, matching):,} of {among}."


def _find(board: Board, query_id: str, member: str) -> QueryRows | list[str]:
    """The queries among which an id is, or the ids that are nearest to it."""
    members = [each for each in board.benchmarks if member in ("", each)] or list(board.benchmarks)
    near: list[str] = []
    for queries in map(queries_of, members):
        if query_id in queries.rows:
            return queries
        near += difflib.get_close_matches(query_id, queries.rows, n=_NEAR)
    return near[:_NEAR] or [next(iter(queries_of(members[0]).rows))]


def _chosen(
    site: Site, board: Board, queries: QueryRows, asked: Mapping[str, str], query_id: str | None = None
) -> tuple[list[ShownMethod], QueryFilter, list[str]]:
    """The methods and the filter that an address chooses; notes say what it asks for in vain."""
    rows, notes = site.server.tables.of(board).view["rows"], list[str]()
    methods = [_method(site, queries, *each, notes) for each in _entries(rows, asked.get("e"), notes)]
    methods, queries = _of_these_queries(methods, queries, query_id, notes)
    narrow = QueryFilter(board, queries, methods, asked)
    return methods, narrow, [*notes, *narrow.notes]


def _entries(
    rows: Sequence[Mapping[str, Any]], ids: str | None, notes: list[str]
) -> Iterator[tuple[str, str]]:
    """Ids and names of the entries that the address chooses."""
    by_id = {row["submission"]: row for row in rows}
    wanted = _default_pair(rows)
    if ids is not None:
        asked = list(dict.fromkeys(filter(None, map(str.strip, ids.split(",")))))
        notes += [
            f"{each[:40]} is not an entry of this board, and is left out."
            for each in asked
            if each not in by_id
        ]
        wanted = [each for each in asked if each in by_id]
        if len(wanted) > _METHODS:
            notes.append(f"A page shows {_METHODS} methods; the others are left out.")
    names = [method_name(by_id[each]) for each in wanted[:_METHODS]]
    for each, name in zip(wanted, names, strict=False):
        # Two of one name are distinguished by their ids.
        yield each, f"{name} ({each})" if names.count(name) > 1 else name


def _default_pair(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The leaders of the first two groups; where there are fewer groups, the first two rows."""
    leaders = [row["submission"] for row in group_leaders(rows)]
    return leaders[:2] if len(leaders) > 1 else [row["submission"] for row in rows[:2]]


def _method(site: Site, queries: QueryRows, submission_id: str, name: str, notes: list[str]) -> ShownMethod:
    submission = site.server.store.submission(submission_id)
    kept = None if submission is None else site.server.lists.of(submission)
    if kept is None:
        notes.append(f"{name}: {UNREAD}")
    return ShownMethod(submission_id, name, None if kept is None else kept.member(queries.spec.id))


def _of_these_queries(
    methods: Sequence[ShownMethod], queries: QueryRows, query_id: str | None, notes: list[str]
) -> tuple[list[ShownMethod], QueryRows]:
    """The methods that answer the same queries, and these: dialogues may answer some of them alone."""
    lists = [each.lists for each in methods if each.lists is not None]
    answered = [each.names for each in lists if query_id is None or query_id in each]
    names = answered[0] if answered else list(queries.rows)
    if names != list(queries.rows) and queries.rows.keys() >= {*names}:
        queries = QueryRows(queries.spec, {name: queries.rows[name] for name in names})
    fitting = []
    for each in methods:
        if each.lists is not None and each.lists.names != list(queries.rows):
            notes.append(f"{each.name} answers other queries, and is not shown.")
            each = replace(each, lists=None)
        fitting.append(each)
    return fitting, queries


def _cards(
    board: Board, queries: QueryRows, query_id: str, methods: Sequence[ShownMethod]
) -> tuple[list[tuple[QueryView, str]], list[str]]:
    """The query, in a dialogue each method's rounds behind it, each with its path; what heads lists."""
    row = queries.rows[query_id]
    named = [(each, each.lists) for each in methods if each.lists is not None]
    own = query_path(board.id, query_id)
    if board.dialogue is not None:
        asked = QueryView.of(row, board.right_by)
        bare = replace(asked, aspects=(), targets=(), positives=(), negatives=())
        rounds = [
            (replace(bare, id=method.name, turns=lists.rounds(query_id)), f"e/{method.id}")
            for method, lists in named
        ]
        return [(replace(asked, negatives=()), own), *rounds], [""]
    turns: list[list[ShownRanking]] = [
        list(turn) for turn in zip(*(lists.of(query_id) for _, lists in named), strict=True)
    ]
    headings = [method.name for method, _ in named]
    for method, lists in named:
        subset = lists.subset(query_id)
        if subset is not None:
            headings.append(f"{method.name}: the subset, as far as the file ranks it")
            turns[0].append(subset)
    return [(QueryView.of(row, board.right_by, turns), own)], headings


def _values(
    site: Site,
    narrow: QueryFilter,
    methods: Sequence[ShownMethod],
    cards: Sequence[tuple[QueryView, str]],
    asked: Mapping[str, str],
) -> tuple[dict[str, Any], str]:
    """What both pages need, and what they may load."""
    board, pair = narrow.board, [each.id for each in methods]
    rows = site.server.tables.of(board).view["rows"]
    images = dict.fromkeys(image for view, _ in cards for image in view.images())
    pictures, offered = _pictures(site, narrow.queries.spec, images)
    elsewhere = asked.get("pictures") == "publisher" and bool(offered)
    # Without `e` there is the default pair, so that none is said too.
    asked_for = {"e": "" if pair == _default_pair(rows) else ",".join(pair) or ",", **narrow.address}
    asked_for["pictures"] = "publisher" if elsewhere else ""
    pictures = offered if elsewhere else pictures
    if elsewhere:
        words = "Your browser takes the pictures from COCO's server."
    elif any(pictures.values()):
        own = board.spec.card.source.publisher == "embedded"
        words = (
            "Pictures are drawn by the package." if own else "Pictures are small copies of the publisher's."
        )
    else:
        words = hidden_pictures(board)
    values = {
        "board": board,
        "narrow": narrow,
        "cards": cards,
        "marks": set().union(*(view.marks() for view, _ in cards)),
        "asked_for": asked_for,
        "pair": pair,
        "choices": [
            (row["submission"], method_name(row))
            for place, row in enumerate(rows)
            if place < _CHOICES or row["submission"] in pair
        ],
        "pictures": pictures,
        "pictures_words": words,
        "elsewhere": "" if not offered else "shown" if elsewhere else "offered",
    }
    return values, COCO_POLICY if elsewhere else PAGE_POLICY


def _pictures(
    site: Site, spec: BenchmarkSpec, images: Mapping[str, None]
) -> tuple[dict[str, str], dict[str, str]]:
    """By image the path of its picture on this site, and where there is none the publisher's address."""
    root = site.server.settings.pictures
    here = {image: picture_path(spec, image) or hosted_path(root, spec, image) for image in images}
    if any(here.values()):
        return here, {}
    found = {image: publishers_address(spec, image) for image in images}
    return here, found if any(found.values()) else {}


def _data(
    narrow: QueryFilter, query_id: str, view: QueryView, methods: Sequence[ShownMethod]
) -> dict[str, Any]:
    """The page as JSON values."""
    shown = []
    for each in methods:
        subset = None if each.lists is None else each.lists.subset(query_id)
        rankings = () if each.lists is None else each.lists.of(query_id)
        shown.append(
            {
                "submission": each.id,
                "name": each.name,
                "rankings": [
                    {"top": list(one.top), "rank": one.rank, "listed": one.listed, "turn": number}
                    for number, one in enumerate(rankings, start=1)
                ],
                "subset": None if subset is None else {"top": list(subset.top), "rank": subset.rank},
            }
        )
    return {
        "board": narrow.board.id,
        "benchmark": narrow.queries.spec.id,
        "id": query_id,
        "row": narrow.queries.rows[query_id],
        "right_answers": view.targets,
        "k": narrow.k,
        **{name: narrow.chosen.get(name) or None for name in ("turn", "by", "outcome", "aspect")},
        **narrow.step(query_id),
        "methods": shown,
    }
