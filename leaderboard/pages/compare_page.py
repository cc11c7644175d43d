"""Entries side by side: which differences are more than chance, and on which queries they come about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from cir_datasets.common.terminal import counted
from cir_datasets.registry.schema import member_metric
from cir_metrics.catalogue import reads_subset
from cir_metrics.errors import CirError, UnknownNameError
from leaderboard import boards
from leaderboard.boards import Board
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
from leaderboard.pages.board.groups import parts_of
from leaderboard.pages.findings import sentence
from leaderboard.pages.labels import metric_label, metric_value, ranked_by
from leaderboard.pages.site import UNREAD, Page, Site
from leaderboard.server.callers import readable
from leaderboard.standings.views import method_name
from leaderboard.store.submission import Submission
from submissions.comparison.result import shown_p

if TYPE_CHECKING:
    from submissions.comparison.difference import Difference, Pair
    from submissions.comparison.result import Comparison

_FLIPS = 50
"""Queries of each pair that are listed; the query browser has all."""
_CHOICES = 1000
"""Rows of a board that the form lists."""


Chosen = tuple[Submission, Mapping[str, Any]]
"""An entry and its row on its board."""


def page(site: Site, query: Mapping[str, str]) -> Page:
    """The page of an address, which has `e`, two to four ids by commas, or `board`, to choose from."""
    entries: list[Chosen] = []
    for submission_id in dict.fromkeys(filter(None, map(str.strip, query.get("e", "").split(",")))):
        try:
            entries.append(_listed(site, submission_id))
        except (UploadRefusedError, UnknownNameError) as error:
            words = sentence(error.message) if isinstance(error, UploadRefusedError) else str(error)
            return _form(site, entries, words, 404)
    if not entries:
        return _form(site, [], board=boards.board(query["board"]) if query.get("board") else None)
    submissions, names = [one for one, _ in entries], [method_name(row) for _, row in entries]
    board = boards.board(submissions[0].board)
    if board.sealed:
        return _form(site, entries, status=400)
    if not 2 <= len(entries) <= MOST:
        chosen = counted(len(entries), "entry", "entries")
        return _form(site, entries, f"{chosen} chosen: a comparison takes 2 to {MOST}.")
    if any(one.board != board.id for one in submissions):
        where = "; ".join(f"{name} on {one.board}" for one, name in zip(submissions, names, strict=True))
        return _form(site, entries, f"These entries are on different boards: {where}.", 400)
    try:
        comparison = site.server.compared.of(submissions)
    except PassingError as error:
        return _form(site, entries, str(error), 503)
    except CirError as error:
        return _form(site, entries, f"They cannot be compared: {error}", 400)
    if comparison is None:
        both = " and ".join(names)
        about = f"The comparison of {both} on {board.title} is being made."
        values = {"board": board, "names": both}
        return Page(
            "compare_waiting.html", f"Comparing {both}", about, values, 202, data={"state": "being made"}
        )
    return _compared(site, board, entries, comparison)


def _listed(site: Site, submission_id: str) -> Chosen:
    """An entry that stands on a board and that everybody may read; else an error says why not."""
    submission = readable(site.server, NOBODY, submission_id)
    board = boards.board(submission.board)
    for row in site.server.tables.of(board).view["rows"]:
        if row["submission"] == submission.id:
            return submission, row
    raise UnknownNameError(
        f"Submission {submission.id} is not listed on {board.title}. Fix: choose entries of its table."
    )


def _form(
    site: Site, entries: Sequence[Chosen], said: str = "", status: int = 200, board: Board | None = None
) -> Page:
    """The choice of entries: of one board, that of the first that is chosen, or of the boards first."""
    board = boards.board(entries[0][0].board) if entries else board
    if board is not None and board.sealed:
        said = f"{board.title} is sealed: it publishes no values per query, so that nothing can be compared."
        board = None
    ids = [one.id for one, _ in entries if board is not None and one.board == board.id]
    rows = [] if board is None else site.server.tables.of(board).view["rows"]
    counts = site.server.store.count_published()
    choices = [each for each in boards.boards() if counts.get(each.id, 0) > 1 and not each.sealed]
    return Page(
        "compare_form.html",
        "Compare entries" if board is None else f"Compare entries of {board.title}",
        "Two to four entries of a board side by side: differences with intervals and tests.",
        {
            "board": board,
            "said": said,
            "ids": [*ids, *[""] * MOST][:MOST],
            "choices": [(row["submission"], method_name(row)) for row in rows[:_CHOICES]],
            "boards": choices if board is None else [],
        },
        status=status,
    )


def _compared(site: Site, board: Board, entries: Sequence[Chosen], comparison: Comparison) -> Page:
    """The page of a comparison that is made; its template puts the board's words and units to the numbers."""
    lists, submissions = site.server.lists, [one for one, _ in entries]
    names = [method.name for method in comparison.methods]
    pairs = [
        _pair(board, [one.id for one in both], comparison, pair)
        for both, pair in zip(combinations(submissions, 2), comparison.pairs, strict=True)
    ]
    columns = list(dict.fromkeys([board.primary, *(column.metric for column in board.columns)]))
    at = "the last" if default_turn(board) == LAST else "any"
    sessions = board.dialogue is not None or board.spec.kind == "multi_turn"
    values = {
        "board": board,
        "ids": [one.id for one in submissions],
        "found": comparison,
        "scores": {method.name: method.values for method in comparison.methods},
        "pairs": pairs,
        "columns": columns,
        "rows": [
            (name, {**row["metrics"], board.primary: row["main"]})
            for name, (_, row) in zip(names, entries, strict=True)
        ],
        "label": partial(metric_label, board),
        "value": partial(metric_value, board),
        "signed": partial(signed, board),
        "shown_p": shown_p,
        "parts": _parts(site, board, names, submissions),
        "unread": [
            name
            for one, name in zip(submissions, names, strict=True)
            if lists.of(one) is None and lists.shown(one)
        ],
        "unread_words": UNREAD,
        "hit": hit_words(board, main_cutoff(board), f", at {at} {turn_word(board)}" if sessions else ""),
        "subset_hit": SUBSET_HIT,
    }
    title = f"{' and '.join(names)} on {board.title}"
    main = pairs[0]["main"]
    difference = signed(board, main.metric, main.difference)
    about = f"{difference} {board.primary_label} on {board.title}; {pairs[0]['words']}"
    document = {"board": board.id, "entries": values["ids"], **comparison.to_dict()}
    for written, pair in zip(document["pairs"], pairs, strict=True):
        flips = pair["flips"]
        written |= {outcome: flips and len(flips[outcome]) for outcome in ("won", "lost")}
    return Page("compare.html", title, about, values, data=document)


def _pair(board: Board, ids: Sequence[str], comparison: Comparison, pair: Pair) -> dict[str, Any]:
    """Two entries, who of them is better, and the queries that one of them hits alone."""
    names = pair.first, pair.second
    main = pair.differences[board.primary]
    verdict, words = _words(board, names, main, comparison.tests)
    # In the gallery, and in the subset.
    flips = {
        reads_subset(member_metric(each.metric)): {"won": each.hit_to_miss, "lost": each.miss_to_hit}
        for each in reversed(pair.flips)
    }
    counts = [len(queries) for queries in flips.get(False, {}).values()]
    return {
        "ids": ",".join(ids),
        "entries": list(zip(ids, names, strict=True)),
        "names": names,
        "words": words,
        "verdict": verdict,
        "main": main,
        "differences": sorted(pair.differences.values(), key=lambda each: each is not main),
        "flips": flips.get(False),
        "subset_flips": flips.get(True),
        "listed": max(_FLIPS // 2, _FLIPS - min(counts, default=0)),
    }


def _words(board: Board, names: tuple[str, str], main: Difference, tests: int) -> tuple[str, str]:
    """Who is better by what ranks, in the words of a table's cell and in a sentence."""
    by = f"by {_by(board)}"
    p, adjusted = (
        text.replace("<", "< ") if text.startswith("<") else f"= {text}"
        for text in map(shown_p, (main.test.p, main.adjusted))
    )
    chance = f"p {p}"
    if tests > 1:
        chance += f" (after Holm's correction over the {tests} tests of this page p {adjusted})"
    if not main.significant:
        text = f"{chance}: no significant difference between {names[0]} and {names[1]} {by}."
        if tests > 1 and (main.interval.low > 0 or main.interval.high < 0):
            text += " The interval excludes 0, but is not corrected for the number of tests."
        return "not significant", text
    ahead, behind = names if main.first_is_better else names[::-1]
    verdict = "first better" if main.first_is_better else "second better"
    return verdict, f"{chance}: {ahead} is significantly better than {behind} {by}."


def _by(board: Board) -> str:
    """What ranks, in a sentence: a mean of several is named by them."""
    several = len(board.primary_terms) > 1
    return f"the {ranked_by(board)}" if several else metric_label(board, board.primary)


def signed(board: Board, metric: str, value: float) -> str:
    """A difference with its sign, as `metric_value`."""
    text = metric_value(board, metric, value).replace("-", "−")
    return text if text.startswith("−") else f"+{text}"


def _parts(
    site: Site, board: Board, names: Sequence[str], submissions: Sequence[Submission]
) -> list[dict[str, Any]]:
    """Plots and tables by turn and by aspect, once all entries have their numbers."""
    numbers = site.server.numbers.side_by_side(submissions)
    if len(numbers) < len(names):
        return []
    return parts_of(board, [(name, numbers[one.id]) for name, one in zip(names, submissions, strict=True)])
