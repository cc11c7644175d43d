"""A query's page: reference, caption and targets, and what chosen methods rank first for it.

Beside it stands the way through a board's queries: those that one method wins from another, of an aspect, by
a turn of the session. All choices are in the address.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cir_datasets.browse import ShownRanking, images_of, query_card
from cir_datasets.browse.queries import QueryRows
from leaderboard.boards import Board
from leaderboard.pages.pictures import hosted_path, picture_path, publishers_address
from leaderboard.pages.queries import hidden_pictures, queries_of, why_hidden
from leaderboard.pages.query_filter import QueryFilter, ShownMethod
from leaderboard.pages.site import COCO_POLICY, PAGE_POLICY, UNREAD, Page, Site, missing_page
from leaderboard.standings.views import group_leaders, method_name

if TYPE_CHECKING:
    from cir_datasets.rows.records import Row

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
            a suite `member`; `q`, a text of captions and ids; `by=subset` where the first of the subset's
            ranking decides; `pictures=publisher` where the publisher's server is to show them.
    """
    if hidden := why_hidden(site, board):
        return missing_page("No queries to look at", hidden)
    found = _find(board, query_id, asked.get("member", ""))
    if isinstance(found, list):
        return _unknown(board, query_id, found)
    return _shown(site, board, found, query_id, asked)


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


def _shown(site: Site, board: Board, queries: QueryRows, query_id: str, asked: Mapping[str, str]) -> Page:
    """The page of a query that there is."""
    rows = site.server.tables.of(board).view["rows"]
    notes: list[str] = []
    methods = [_method(site, queries, *each, notes) for each in _chosen(rows, asked.get("e"), notes)]
    methods, queries = _of_these_queries(methods, queries, query_id, notes)
    narrow = QueryFilter(board, queries, query_id, methods, asked)
    query, parts = _drawn(board, queries.rows[query_id], query_id, methods, narrow.k)
    images = dict.fromkeys(images_of(query))
    images |= dict.fromkeys(
        image for part in parts for each in part["rounds"] for image in each["shown"]["top"]
    )
    pictures = {image: picture_path(queries.spec, image) for image in images}
    drawn, elsewhere = any(pictures.values()), {}
    root = site.server.settings.pictures
    hosted = {} if drawn else {image: hosted_path(root, queries.spec, image) for image in images}
    if any(hosted.values()):
        pictures = hosted
    elif not drawn:
        elsewhere = {image: publishers_address(queries.spec, image) for image in images}
    asked_elsewhere = asked.get("pictures") == "publisher" and any(elsewhere.values())
    chosen = [each.id for each in methods]
    asked_for = {"e": "" if chosen == _default_pair(rows) else ",".join(chosen), **narrow.address}
    if asked.get("member") != queries.spec.id:
        asked_for["member"] = ""
    if asked_elsewhere:
        asked_for["pictures"], pictures = "publisher", elsewhere
    values = {
        "board": board,
        "narrow": narrow,
        "query": query,
        "methods": parts,
        "rounds": board.dialogue is not None,
        "notes": [*notes, *narrow.notes],
        "asked_for": asked_for,
        "kept": [(name, said) for name, said in asked_for.items() if name != "e" and said],
        "step": narrow.step(),
        "pair": chosen,
        "choices": [
            (row["submission"], method_name(row))
            for place, row in enumerate(rows)
            if place < _CHOICES or row["submission"] in chosen
        ],
        "marks": _marks(query, parts),
        "pictures": pictures,
        "drawn": any(pictures.values()),
        "pictures_words": _pictures_words(board, pictures, drawn=drawn),
        "elsewhere": "" if not any(elsewhere.values()) else "shown" if asked_elsewhere else "offered",
    }
    return Page(
        "query_browser.html",
        ", ".join([f"{query_id} on {board.title}", *narrow.narrowed_to]),
        f"A {narrow.unit} of {board.title}, its targets, and what methods rank first: {query_id}"[:160],
        values,
        policy=COCO_POLICY if asked_elsewhere else PAGE_POLICY,
        data=_data(narrow, query, methods),
    )


def _pictures_words(board: Board, pictures: Mapping[str, str], *, drawn: bool) -> str:
    shown = next(filter(None, pictures.values()), "")
    if shown.startswith("https:"):
        return "Your browser takes the pictures from COCO's server."
    if drawn:
        return "Pictures are drawn by the package."
    return "Pictures are small copies of the publisher's." if shown else hidden_pictures(board)


def _chosen(
    rows: Sequence[Mapping[str, Any]], ids: str | None, notes: list[str]
) -> Iterator[tuple[str, str]]:
    """Ids and names of the entries that the address chooses; notes say what it asks for in vain."""
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


def _method(site: Site, queries: QueryRows, submission_id: str, name: str, notes: list[str]) -> ShownMethod:
    submission = site.server.store.submission(submission_id)
    kept = None if submission is None else site.server.lists.of(submission)
    if kept is None:
        notes.append(f"{name}: {UNREAD}")
    return ShownMethod(submission_id, name, None if kept is None else kept.member(queries.spec.id))


def _of_these_queries(
    methods: Sequence[ShownMethod], queries: QueryRows, query_id: str, notes: list[str]
) -> tuple[list[ShownMethod], QueryRows]:
    """The methods that answer the same queries, and these: dialogues may answer some of them alone."""
    answered = [each.lists.names for each in methods if each.lists is not None and query_id in each.lists]
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


def _drawn(
    board: Board, row: Row, query_id: str, methods: Sequence[ShownMethod], k: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The query as templates take it, with its lists by turn; of a dialogue the rounds of each method."""
    metrics, named = board.right_by, [(each, each.lists) for each in methods if each.lists is not None]
    by_turn: list[list[ShownRanking]] = []
    headings, parts = [], []
    for method, lists in named if board.dialogue is not None else ():
        rounds = [
            {
                "caption": each.caption,
                "reference": each.reference,
                "shown": query_card(row, {query_id: [[each.ranking]]}, k, metrics, 1)["turns"][0]["lists"][0],
            }
            for each in lists.rounds(query_id)
        ]
        parts.append({"id": method.id, "name": method.name, "rounds": rounds})
    if board.dialogue is None:
        by_turn = [list(turn) for turn in zip(*(lists.of(query_id) for _, lists in named), strict=True)]
        headings = [method.name for method, _ in named]
        for method, lists in named:
            subset = lists.subset(query_id)
            if subset is not None:
                headings.append(f"{method.name}: the subset, as far as the file ranks it")
                by_turn[0].append(subset)
    query = query_card(row, {query_id: by_turn} if by_turn else None, k, metrics, len(named))
    return {**query, "negatives": [], "headings": headings}, parts


def _data(narrow: QueryFilter, query: Mapping[str, Any], methods: Sequence[ShownMethod]) -> dict[str, Any]:
    """The page as JSON values."""
    shown = []
    for each in methods:
        subset = None if each.lists is None else each.lists.subset(narrow.id)
        rankings = () if each.lists is None else each.lists.of(narrow.id)
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
        "id": narrow.id,
        "row": narrow.queries.rows[narrow.id],
        "right_answers": query["targets"],
        "k": narrow.k,
        **{name: narrow.chosen.get(name) or None for name in ("turn", "by", "outcome", "aspect")},
        **narrow.step(),
        "methods": shown,
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
