"""An entry's page: its number, what its method says of itself, how it got there, and how to cite it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cir_metrics.catalogue import parse_metric
from cir_metrics.errors import CirError, UnknownNameError
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.callers import readable
from leaderboard.identity import NOBODY
from leaderboard.inspection.hits import answer_words, turn_word
from leaderboard.inspection.numbers import MemberNumbers
from leaderboard.inspection.protocol import protocol_check
from leaderboard.pages.board.groups import leading_metric
from leaderboard.pages.board.head import file_word, in_short
from leaderboard.pages.board.rows import lines_of
from leaderboard.pages.citation import citation
from leaderboard.pages.event_words import event_words
from leaderboard.pages.figures import with_interval
from leaderboard.pages.labels import metric_label, metric_value, ranked_by_heading
from leaderboard.pages.plots import histogram_svg, hits_svg
from leaderboard.pages.published_rows import as_sentence
from leaderboard.pages.queries import first_query
from leaderboard.pages.signature import signature_of
from leaderboard.pages.site import UNREAD, Page, Site
from leaderboard.standings.blocks import UNVERIFIED, Reference, reference_words
from leaderboard.submission import Event, Submission
from leaderboard.views import method_name, results_from, submission_view, why_not_listed
from submissions.report.grouping import Grouping
from submissions.scoring.score_report import is_rank

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
    name = method_name(row)
    score = _score_line(board, row, rows)
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
            "facts": [
                ("Reference image", reference_words(row["reference_evidence"])),
                *_facts(row["method"]),
            ],
            "metrics": _metrics_table(board, row),
            "signature": signature_of(submission, board),
            "happened": [_happened(event) for event in submission.events],
            "leader": _leader(rows, row),
            "block_words": table["blocks"][row["block"]],
            "unverified_words": UNVERIFIED,
            "has_ranks": any(is_rank(name) for name in row["metrics"]),
            "names": {each["submission"]: method_name(each) for each in rows},
            "query": first_query(site, board),
            **_looked_at(site, board, submission, row),
            "cite": citation(board, row, site.name, site.server.settings.url),
        },
    )


def _board_of(submission: Submission) -> Board | None:
    try:
        return boards.board(submission.board)
    except UnknownNameError:  # the board was removed
        return None


def _not_listed(submission: Submission) -> Page:
    """The page of a submission that everybody may read, and that is not on a board."""
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
        f"Submission {submission.id} is not listed on a board.",
        {"id": submission.id, "why": why},
        status=404,
    )


def _score_line(board: Board, row: Mapping[str, Any], rows: list[Mapping[str, Any]]) -> str:
    """An entry's number with its interval, its group and its board."""
    value = with_interval(row["main"], row["interval"], board.primary_unit)
    return f"{ranked_by_heading(board)} {value}, {_place(row, rows)} on {board.title}"


def _place(row: Mapping[str, Any], rows: list[Mapping[str, Any]]) -> str:
    inside = [each for each in rows if each["block"] == row["block"]]
    if row["group"] is not None:
        return f"group {row['group']} of {max(each['group'] or 0 for each in inside)}"
    if row["is_oracle"]:
        return "an oracle, without a rank"
    if row["baseline"]:
        return "a baseline, without a rank"
    if row["rank"] is None:
        return "without a rank"
    return f"rank {row['rank']} of {sum(each['rank'] is not None for each in inside)}"


def _facts(method: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = []
    for field, heading in _FACTS:
        said = method.get(field)
        if said not in (None, "", []):
            found.append((heading, ", ".join(map(str, said)) if isinstance(said, list) else str(said)))
    return found


def _metrics_table(board: Board, row: Mapping[str, Any]) -> dict[str, Any]:
    """All numbers of an entry, the board's first, as templates take a table."""
    labels = board.labels
    own = {board.primary: row["main"], **row["metrics"]}
    listed = [*(name for name in labels if name in own), *(name for name in own if name not in labels)]
    rows = [
        {
            "metric": name,
            "label": labels.get(name, ""),
            "shown": metric_value(board, name, own[name]),
            "page": _metric_path(name),
        }
        for name in listed
    ]
    return {"rows": rows, "folds": len(rows) > _MOST_METRICS and any(row["label"] for row in rows)}


def _metric_path(name: str) -> str:
    """Path of a metric's page; empty of a mean of several and of a suite's member."""
    try:
        return f"m/{parse_metric(name.removesuffix('@micro'))[0]}"
    except CirError:
        return ""


def _happened(event: Event) -> dict[str, Any]:
    return {"at": event.at, "words": event_words(event), "by": event.by}


def _looked_at(site: Site, board: Board, submission: Submission, row: Mapping[str, Any]) -> dict[str, Any]:
    """What the entry's lists show, where readers may see them: protocol, ranks, turns, aspects."""
    server = site.server
    if not server.lists.shown(submission):
        return {"checked": [], "members": [], "unread": ""}
    lists, numbers = server.lists.of(submission), server.numbers.of(submission)
    checked = []
    if lists is not None:
        reference = Reference(**row["reference_evidence"])
        checked = protocol_check(board, lists, reference, server.equals(submission)).findings()
    members = [] if numbers is None else [_member(board, method_name(row), each) for each in numbers.members]
    return {"checked": checked, "members": members, "unread": as_sentence(UNREAD) if lists is None else ""}


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
        "turn": turn_word(board),
        "curve_plot": hits_svg([(name, numbers.curve)], numbers.k, turn_word(board)) if numbers.curve else "",
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


def _grouping(board: Board, grouping: Grouping) -> dict[str, Any]:
    """A table by group: of the metric that ranks, or the first one of it that is reported by group."""
    known = grouping.groups[0].values if grouping.groups else {}
    metric = leading_metric(board, known)
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
    """The first entry of its block, or for the first the second: what this one is compared with."""
    inside = (each["submission"] for each in rows if each["block"] == row["block"])
    return next((each for each in inside if each != row["submission"]), None)
