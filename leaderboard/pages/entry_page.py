"""An entry's page: its number, what its method says of itself, how it got there, and how to cite it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cir_metrics.catalogue import parse_metric
from cir_metrics.errors import CirError, UnknownNameError
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.callers import readable
from leaderboard.identity import NOBODY
from leaderboard.inspection.alike import entries_alike
from leaderboard.inspection.numbers import MemberNumbers, TurnPoint
from leaderboard.inspection.protocol import protocol_check
from leaderboard.pages.board_head import file_word, in_short, ranked_by
from leaderboard.pages.board_rows import lines_of
from leaderboard.pages.citation import citation
from leaderboard.pages.figures import number
from leaderboard.pages.happened import happened_words
from leaderboard.pages.plots import Curve, Point, curve_svg, histogram_svg
from leaderboard.pages.published_page import column_of
from leaderboard.pages.query_page import answer_words, first_query
from leaderboard.pages.site import Page, Site
from leaderboard.submission import Event, Submission
from leaderboard.views import results_from, submission_view, why_not_listed
from submissions.report.grouping import Grouping
from submissions.scoring.score_report import is_rank, shown_value

_MOST_METRICS = 16
"""Of an entry with more metrics those of the board are shown, the others on a click."""
_FACTS = (
    ("backbone", "Backbone"),
    ("trained_on", "Trained on"),
    ("caption_rule", "Caption rule"),
    ("text_fields", "Text fields"),
    ("aggregation", "Turns become one ranking by"),
    ("search", "Search"),
    ("reranking", "Re-ranking"),
    ("own_gallery", "Own gallery"),
    ("skipped_images", "Images that could not be read"),
    ("oracle", "Knows beyond the query"),
    ("notes", "Notes"),
)
"""Fields of the method block that are shown, with their headings."""


def page(site: Site, submission_id: str) -> Page:
    """The page.

    Args:
        site: of the server.
        submission_id: of an entry.

    Raises:
        UploadRefusedError: there is no such submission, or not everybody may read it.
    """
    submission = readable(site.server, NOBODY, submission_id)
    board = _board_of(submission)
    table = site.server.tables.of(board).view if board is not None else {}
    rows = table.get("rows", [])
    row = next((row for row in rows if row["submission"] == submission.id), None)
    if board is None or row is None:
        return _not_listed(submission)
    view = submission_view(submission)
    name = str(row["method"].get("name", "unnamed"))
    score = score_line(board, row, rows)
    return Page(
        "entry.html",
        f"{name} on {board.title}",
        f"{score} by {name}: method, metrics, ranks, history, and how to cite it.",
        {
            "board": board,
            "row": row,
            "view": view,
            "name": name,
            "score": score,
            "word": file_word(board),
            **in_short(board, table, lines_of(board, table)),
            "facts": _facts(row["method"]),
            "metrics": metrics_table(board, row),
            "signature": signature_parts(submission, board),
            "happened": [_happened(event) for event in submission.events],
            "leader": _leader(rows, row),
            "has_ranks": any(is_rank(name) for name in row["metrics"]),
            "names": {each["submission"]: each["method"].get("name") for each in rows},
            "query": first_query(site, board),
            **_looked_at(site, board, submission),
            "cite": citation(board, row, site.name, site.server.settings.url),
        },
    )


def _board_of(submission: Submission) -> Board | None:
    try:
        return boards.board(submission.board)
    except UnknownNameError:  # the board was removed
        return None


def _not_listed(submission: Submission) -> Page:
    """The page of a submission that everybody may read, and that stands on no board."""
    if submission.state == "published" and results_from(submission) is None:
        why = f"The board {submission.board} is not here any more, or cannot read this entry."
    else:
        why = why_not_listed(submission) or (
            "Validation found errors in its file."
            if submission.state == "rejected"
            else "It waits to be judged."
        )
    return Page(
        "entry_missing.html",
        "No entry on a board",
        f"Submission {submission.id} has no line on a board.",
        {"id": submission.id, "why": why},
        status=404,
    )


def score_line(board: Board, row: Mapping[str, Any], rows: list[Mapping[str, Any]]) -> str:
    """An entry's number with its interval, its group and its board.

    Args:
        board: the board.
        row: of the board's table.
        rows: all of them.
    """
    value = number(row["main"], board.primary_unit)
    if row["interval"] is not None:
        low, high = (number(end, board.primary_unit) for end in row["interval"])
        value = f"{value} [{low}, {high}]"
    metric = ranked_by(board) if len(board.primary_terms) > 1 else board.primary_label
    return f"{metric[:1].upper()}{metric[1:]} {value}, {_place(row, rows)} on {board.title}"


def _place(row: Mapping[str, Any], rows: list[Mapping[str, Any]]) -> str:
    groups = max((each["group"] or 0 for each in rows), default=0)
    if row["group"] is not None:
        return f"group {row['group']} of {groups}"
    if row["is_oracle"]:
        return "an oracle, without a rank"
    if row["rank"] is None:
        return "without a rank"
    rank = f"rank {row['rank']} of {sum(each['rank'] is not None for each in rows)}"
    return f"{rank}, a baseline outside the groups" if row["baseline"] else rank


def _facts(method: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = []
    for field, heading in _FACTS:
        said = method.get(field)
        if said not in (None, "", []):
            found.append((heading, ", ".join(map(str, said)) if isinstance(said, list) else str(said)))
    return found


def metrics_table(board: Board, row: Mapping[str, Any]) -> dict[str, Any]:
    """All numbers of an entry, the board's first, as templates take a table."""
    headings = {board.primary: board.primary_label}
    headings |= {column.metric: column.label for column in board.columns}
    units = {board.primary: board.primary_unit} | {column.metric: column.unit for column in board.columns}
    own = {board.primary: row["main"], **row["metrics"]}
    listed = [*(name for name in headings if name in own), *(name for name in own if name not in headings)]
    rows = []
    for name in listed:
        value = own[name]
        shown = number(value, units[name]) if name in units else shown_value(name, value).strip()
        rows.append(
            {"metric": name, "label": headings.get(name, ""), "shown": shown, "page": _metric_path(name)}
        )
    return {"rows": rows, "folds": len(rows) > _MOST_METRICS and any(row["label"] for row in rows)}


def metric_label(board: Board, metric: str) -> str:
    """What a metric is called on all pages of a board.

    Args:
        board: the board.
        metric: its printed name.
    """
    headings = {column.metric: column.label for column in board.columns} | {
        board.primary: board.primary_label
    }
    if metric in headings:
        return headings[metric]
    head = column_of(metric).head
    return head if board.dialogue is not None else head.replace(", round ", ", turn ")


def _metric_path(name: str) -> str:
    """Path of a metric's page; empty of a mean of several and of a suite's member."""
    try:
        return f"m/{parse_metric(name.removesuffix('@micro'))[0]}"
    except CirError:
        return ""


def signature_parts(submission: Submission, board: Board) -> dict[str, Any]:
    """The signature of what ranks: its text, and each part with what it says."""
    signature = (submission.scores or {})["signatures"][board.primary_terms[0]]
    text = str(signature["text"])
    return {"text": text, "parts": [(part, part_meaning(part)) for part in text.split(" | ")]}


_MEANINGS = {
    "data": "the rows that were scored: sha256 over them, its beginning",
    "gallery": "how many images are ranked, and the sha256 over their sorted ids; unknown where the "
    "publisher's list is not on the server",
    "ref": "whether the reference image stays in the ranking or is removed",
    "ties": "listed: ranks are places in the file's lists, and whoever wrote them broke the ties; "
    "last: equal scores count against the target",
    "metric": "version of the metric's code, and its variant where that is not the default",
    "mean": "macro: each member weighs the same; micro: each query does",
    "members": "how many benchmarks the suite has, and the sha256 over their signatures",
    "sig": "the signature's own format",
    "skipped": "checks that were not made",
    "search": "how the gallery was searched, for the record",
    "rerank": "how the best images were put in another order, for the record",
    "dialogue": "the dialogue's choices and its user",
    "n": "queries or sessions that were scored, for the record",
    "v": "version of cir-benchmarks that scored them, for the record",
}


def part_meaning(part: str) -> str:
    """What a part of a signature says; empty where it is not known."""
    name, colon, _ = part.partition(":")
    if colon and name in _MEANINGS:
        return _MEANINGS[name]
    return "the benchmark or suite, and its version" if "#" in part else ""


def _happened(event: Event) -> dict[str, Any]:
    return {"at": event.at, "words": happened_words(event), "by": event.by}


def _looked_at(site: Site, board: Board, submission: Submission) -> dict[str, Any]:
    """What the entry's lists show, where readers may see them: protocol, ranks, turns, aspects."""
    server = site.server
    if not server.lists.shown(submission):
        return {"checked": [], "members": [], "waits": False}
    lists, numbers = server.lists.of(submission), server.numbers.of(submission)
    checked = []
    if lists is not None:
        alike = entries_alike(server.store, server.lists, server.tables.of(board), submission)
        checked = protocol_check(board, lists, server.equals(submission), alike).findings()
    name = str((submission.method or {}).get("name", "unnamed"))
    members = [] if numbers is None else [_member(board, name, each) for each in numbers.members]
    return {"checked": checked, "members": members, "waits": lists is None}


def _member(board: Board, name: str, numbers: MemberNumbers) -> dict[str, Any]:
    """An entry's numbers on one benchmark as templates take them."""
    answers, best = _ranked_words(board)
    return {
        "benchmark": numbers.benchmark,
        "answers": answers,
        "best": best,
        "k": numbers.k,
        "ranks": numbers.ranks,
        "ranks_plot": histogram_svg(
            [(each.label, each.share, f"{each.count:,}") for each in numbers.ranks],
            title=f"Where {answers} stand: {name}",
            description="The table below has the numbers.",
            x_label=f"rank of {best}",
            counted="sessions" if numbers.curve else "queries",
        ),
        "curve": numbers.curve,
        "curve_plot": curve_plot([(name, numbers.curve)], numbers.k) if numbers.curve else "",
        "groupings": [
            _grouping(board, each) for each in (numbers.aspects, numbers.lengths) if each is not None
        ],
    }


def _ranked_words(board: Board) -> tuple[str, str]:
    """What the ranks are of: in the plural, and of one query."""
    right = answer_words(board)
    if right == "the target":
        return "targets", right
    noun = right.partition(" ")[2]
    return f"{noun}s", f"the best {noun}"


def curve_plot(curves: Sequence[tuple[str, Sequence[TurnPoint]]], k: int) -> str:
    """Hits by turn of one method or several, with their intervals as bands.

    Args:
        curves: names, and the numbers by turn.
        k: the cutoff.
    """
    drawn = [
        Curve(name, tuple(Point(each.turn, each.value, each.low, each.high) for each in points))
        for name, points in curves
    ]
    return curve_svg(
        drawn,
        title=f"Hits@{k} by turn",
        description="Bands are 95 % intervals. The table below has the numbers.",
        x_label="turn",
        y_label=f"Hits@{k}, %",
    )


def _grouping(board: Board, grouping: Grouping) -> dict[str, Any]:
    """A table by group: of the metric that ranks, or the first one of it that is reported by group."""
    known = grouping.groups[0].values if grouping.groups else {}
    metric = next((term for term in board.primary_terms if term in known), next(iter(known), ""))
    not_shown = {name.partition("@")[0] for name in known} - {metric.partition("@")[0]}
    return {
        "title": grouping.title,
        "head": grouping.head.capitalize(),
        "counted": grouping.counted.capitalize(),
        "metric": metric,
        "label": metric_label(board, metric),
        "rows": [
            {
                "name": group.name,
                "n": group.n,
                "value": group.values.get(metric),
                "random": group.random.get(metric),
            }
            for group in (*grouping.groups, *grouping.means)
        ],
        "notes": [note for note in grouping.notes if note.partition(":")[0] not in not_shown],
    }


def _leader(rows: list[Mapping[str, Any]], row: Mapping[str, Any]) -> str | None:
    """The first entry, or for the first the second: what this one is compared with."""
    others = [each["submission"] for each in rows if each["submission"] != row["submission"]]
    return others[0] if others else None
