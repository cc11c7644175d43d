"""Entries side by side: which differences are more than chance, and on which queries they come about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from cir_datasets.common.terminal import counted
from cir_datasets.registry.averages import member_metric
from cir_metrics.catalogue import reads_subset
from cir_metrics.errors import CirError, UnknownNameError
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.callers import readable
from leaderboard.errors import PassingError, UploadRefusedError
from leaderboard.identity import NOBODY
from leaderboard.inspection.differences import MOST
from leaderboard.inspection.hits import (
    LAST,
    SUBSET_HIT,
    default_turn,
    hit_words,
    main_cutoff,
    turn_word,
)
from leaderboard.inspection.numbers import EntryNumbers
from leaderboard.pages.board.groups import aspects, turns
from leaderboard.pages.findings import sentence
from leaderboard.pages.labels import metric_label, metric_value, ranked_by
from leaderboard.pages.site import UNREAD, Page, Site
from leaderboard.submission import Submission
from leaderboard.views import method_name
from submissions.comparison.result import shown_p
from submissions.scoring.samples import is_better

if TYPE_CHECKING:
    from submissions.comparison.difference import Difference, Flips, Pair
    from submissions.comparison.result import Comparison

_FLIPS = 50
"""Queries of each pair that are listed; the query browser has all."""
_CHOICES = 1000
"""Rows of a board that the form lists."""


def page(site: Site, query: Mapping[str, str]) -> Page:
    """The page.

    Args:
        site: of the server.
        query: of the address: `e`, two to four ids of entries by commas; or `board`, to choose from.
    """
    ids = list(dict.fromkeys(filter(None, map(str.strip, query.get("e", "").split(",")))))
    found: list[tuple[Submission, Board, Mapping[str, Any]]] = []
    for each in ids:
        try:
            found.append(_listed(site, each))
        except UploadRefusedError as error:
            return _form(site, *_known(found), sentence(error.message), 404)
        except UnknownNameError as error:
            return _form(site, *_known(found), str(error), 404)
    board = found[0][1] if found else None
    if board is None and query.get("board"):
        board = boards.board(query["board"])
    if board is not None and board.sealed:
        said = f"{board.title} is sealed: it publishes no values per query, so that nothing can be compared."
        return _form(site, None, [], said, 400 if found else 200)
    if not 2 <= len(found) <= MOST:
        said = f"{counted(len(found), 'entry', 'entries')} chosen: a comparison takes 2 to {MOST}."
        return _form(site, board, ids, said if found else "", 200)
    others = sorted({each.id for _, each, _ in found})
    if board is None or len(others) > 1:
        where = "; ".join(f"{method_name(row)} on {each.id}" for _, each, row in found)
        return _form(site, board, ids[:1], f"These entries are on different boards: {where}.", 400)
    submissions = [submission for submission, _, _ in found]
    try:
        differences = site.server.compared.of(submissions)
    except PassingError as error:
        return _form(site, board, ids, str(error), 503)
    except CirError as error:
        return _form(site, board, ids, f"They cannot be compared: {error}", 400)
    rows = [row for _, _, row in found]
    if differences is None:
        return _waiting(board, rows)
    return _compared(site, board, submissions, rows, differences)


def _known(
    found: Sequence[tuple[Submission, Board, Mapping[str, Any]]],
) -> tuple[Board | None, list[str]]:
    """What a form keeps of the entries before one that is not known: the first one's board, and their ids."""
    if not found:
        return None, []
    board = found[0][1]
    return board, [one.id for one, other, _ in found if other == board]


def _listed(site: Site, submission_id: str) -> tuple[Submission, Board, Mapping[str, Any]]:
    """An entry with its board and its row.

    Raises:
        UploadRefusedError: there is no such submission, or not everybody may read it.
        UnknownNameError: it is not listed on a board.
    """
    submission = readable(site.server, NOBODY, submission_id)
    board = boards.board(submission.board)
    for row in site.server.tables.of(board).view["rows"]:
        if row["submission"] == submission.id:
            return submission, board, row
    raise UnknownNameError(
        f"Submission {submission.id} is not listed on {board.title}. Fix: choose entries of its table."
    )


def _form(site: Site, board: Board | None, ids: Sequence[str], said: str, status: int) -> Page:
    """The choice of entries: of one board, or of the boards first."""
    rows = [] if board is None else site.server.tables.of(board).view["rows"]
    counts = site.server.store.count_published()
    listed = [each for each in boards.boards() if counts.get(each.id, 0) > 1 and not each.sealed]
    return Page(
        "compare_form.html",
        "Compare entries" if board is None else f"Compare entries of {board.title}",
        "Two to four entries of a board side by side: differences with intervals and tests.",
        {
            "board": board,
            "said": said,
            "ids": [*ids, *[""] * MOST][:MOST],
            "choices": [(row["submission"], method_name(row)) for row in rows[:_CHOICES]],
            "boards": [] if board is not None else listed,
        },
        status=status,
    )


def _waiting(board: Board, rows: Sequence[Mapping[str, Any]]) -> Page:
    names = " and ".join(map(method_name, rows))
    return Page(
        "compare_waiting.html",
        f"Comparing {names}",
        f"The comparison of {names} on {board.title} is being made.",
        {"board": board, "names": names},
    )


def _compared(
    site: Site,
    board: Board,
    submissions: Sequence[Submission],
    rows: Sequence[Mapping[str, Any]],
    found: Comparison,
) -> Page:
    """The page of a comparison that is made."""
    numbers = site.server.numbers.side_by_side(submissions)
    names = [method.name for method in found.methods]
    pairs = [
        _pair(board, both, found, pair)
        for both, pair in zip(combinations(submissions, 2), found.pairs, strict=True)
    ]
    values = {
        "board": board,
        "ids": [each.id for each in submissions],
        "found": found,
        "pairs": pairs,
        "columns": _columns(board, rows, names),
        "parts": _parts(board, names, [numbers[each.id] for each in submissions if each.id in numbers]),
        "waits": any(map(site.server.lists.waits, submissions)),
        "unread": _unread(site, submissions, names),
        "unread_words": UNREAD,
        "hit": _hit(board),
        "subset_hit": SUBSET_HIT,
        "by": _by(board, board.primary),
    }
    title = f"{' and '.join(names)} on {board.title}"
    about = f"{pairs[0]['difference']} {board.primary_label} on {board.title}; {pairs[0]['words']}"
    document = {"board": board.id, "entries": values["ids"], **found.to_dict()}
    for said, pair in zip(document["pairs"], pairs, strict=True):
        flips = pair["flips"] or {}
        said |= {"won": flips.get("won"), "lost": flips.get("lost")}
    return Page("compare.html", title, about, values, data=document)


def _unread(site: Site, submissions: Sequence[Submission], names: Sequence[str]) -> list[str]:
    """Names of the entries whose lists may be shown and could not be read."""
    lists = site.server.lists
    return [
        name
        for submission, name in zip(submissions, names, strict=True)
        if lists.of(submission) is None and lists.shown(submission) and not lists.waits(submission)
    ]


def _hit(board: Board) -> str:
    """What a hit is."""
    where = ""
    if board.dialogue is not None or board.spec.kind == "multi_turn":
        at = "the last" if default_turn(board) == LAST else "any"
        where = f", at {at} {turn_word(board)}"
    return hit_words(board, main_cutoff(board), where)


def _pair(
    board: Board, submissions: tuple[Submission, Submission], found: Comparison, pair: Pair
) -> dict[str, Any]:
    """Two entries in words and numbers."""
    names = pair.first, pair.second
    main = pair.differences[board.primary]
    values = {method.name: method.values for method in found.methods}
    in_subset = [reads_subset(member_metric(each.metric)) for each in pair.flips]
    flips = [_flips(board, each, main.n) for each in pair.flips]
    ids = [each.id for each in submissions]
    differences = sorted(pair.differences.values(), key=lambda each: each is not main)
    rows = [_row(board, each, *(values[name][each.metric] for name in names)) for each in differences]
    return {
        "ids": ",".join(ids),
        "entries": list(zip(ids, names, strict=True)),
        "names": names,
        "words": _words(board, names, main, found.tests),
        "verdict": _verdict(main),
        "significant": main.significant,
        "flips": next((each for each, inside in zip(flips, in_subset, strict=True) if not inside), None),
        "subset_flips": next((each for each, inside in zip(flips, in_subset, strict=True) if inside), None),
        **rows[0],
        "rows": rows,
    }


def _words(board: Board, names: tuple[str, str], main: Difference, tests: int) -> str:
    """A sentence on a difference."""
    by = f"by {_by(board, main.metric)}"
    chance = f"p {_p_words(main.test.p)}"
    if tests > 1:
        adjusted = _p_words(main.adjusted)
        chance += f" (after Holm's correction over the {tests} tests of this page p {adjusted})"
    if not main.significant:
        said = f"{chance}: no significant difference between {names[0]} and {names[1]} {by}."
        if tests > 1 and (main.interval.low > 0 or main.interval.high < 0):
            said += " The interval excludes 0, but is not corrected for the number of tests."
        return said
    ahead, behind = names if is_better(main.metric, main.difference, 0.0) else names[::-1]
    return f"{chance}: {ahead} is significantly better than {behind} {by}."


def _by(board: Board, metric: str) -> str:
    """A metric in a sentence: a mean of several is named by them."""
    several = metric == board.primary and len(board.primary_terms) > 1
    return f"the {ranked_by(board)}" if several else metric_label(board, metric)


def _verdict(main: Difference) -> str:
    """Who is better, in the words of a table's cell."""
    if not main.significant:
        return "not significant"
    return "first better" if is_better(main.metric, main.difference, 0.0) else "second better"


def _row(board: Board, each: Difference, first: float, second: float) -> dict[str, Any]:
    low, high = (signed(board, each.metric, end) for end in each.interval.ends)
    return {
        "metric": each.metric,
        "label": metric_label(board, each.metric),
        "first": metric_value(board, each.metric, first),
        "second": metric_value(board, each.metric, second),
        "difference": signed(board, each.metric, each.difference),
        "interval": f"[{low}, {high}]",
        "p": shown_p(each.test.p),
        "adjusted": shown_p(each.adjusted),
        "significant": each.significant,
        "counts": f"{each.wins:,} / {each.ties:,} / {each.losses:,}",
    }


def signed(board: Board, metric: str, value: float) -> str:
    """A difference with its sign, as `metric_value`.

    Args:
        board: the board.
        metric: its printed name.
        value: a difference of fractions, or of ranks.
    """
    text = metric_value(board, metric, value).replace("-", "−")
    return text if text.startswith("−") else f"+{text}"


def _p_words(p: float) -> str:
    text = shown_p(p)
    return text.replace("<", "< ") if text.startswith("<") else f"= {text}"


def _flips(board: Board, flips: Flips, n: int) -> dict[str, Any]:
    """The queries that one of two entries hits alone."""
    queries = {"won": flips.hit_to_miss, "lost": flips.miss_to_hit}
    won, lost = map(len, queries.values())
    room = max(_FLIPS // 2, _FLIPS - min(won, lost))
    return {
        "won": won,
        "lost": lost,
        "same": n - won - lost,
        "first": {outcome: each[0] if each else None for outcome, each in queries.items()},
        "listed": [
            {"id": name, "benchmark": benchmark, "outcome": outcome}
            for outcome, each in queries.items()
            for benchmark, name in each[:room]
        ],
        "suite": board.takes_bundles,
    }


def _columns(board: Board, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """The board's columns, a row an entry."""
    metrics = [board.primary, *(column.metric for column in board.columns if column.metric != board.primary)]
    own = [{**row["metrics"], board.primary: row["main"]} for row in rows]
    return {
        "heads": [metric_label(board, metric) for metric in metrics],
        "rows": [
            (name, [metric_value(board, metric, each.get(metric)) for metric in metrics])
            for name, each in zip(names, own, strict=True)
        ],
    }


def _parts(board: Board, names: Sequence[str], numbers: Sequence[EntryNumbers]) -> list[dict[str, Any]]:
    """Plots and tables by turn and by aspect, benchmark by benchmark, once all entries have their numbers."""
    if len(numbers) < len(names):
        return []
    parts = []
    for members in zip(*(each.members for each in numbers), strict=True):
        beside = list(zip(names, members, strict=True))
        where = f", {members[0].benchmark}" if board.takes_bundles else ""
        if all(member.curve for member in members):
            title = f"Hits@{members[0].k} by {turn_word(board)}{where}"
            parts.append({"title": title, **turns(board, beside)})
        if all(member.aspects for member in members):
            shown = aspects(board, beside)
            parts.append({"title": f"{metric_label(board, shown['metric'])} by aspect{where}", **shown})
    return parts
