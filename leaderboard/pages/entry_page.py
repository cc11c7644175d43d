"""An entry's page: its numbers, what it beats, what it answered; then its method, signature and history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cir_datasets.common.terminal import counted
from cir_datasets.common.yaml import package_yaml
from cir_metrics.catalogue import parse_metric
from cir_metrics.errors import CirError
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.errors import UploadRefusedError
from leaderboard.identity import NOBODY
from leaderboard.inspection.hits import answer_words, turn_word
from leaderboard.inspection.numbers import MemberNumbers
from leaderboard.inspection.protocol import protocol_findings
from leaderboard.pages.board.chance_level import chance_level
from leaderboard.pages.board.groups import parts_of
from leaderboard.pages.board.head import file_word
from leaderboard.pages.citation import citation
from leaderboard.pages.event_words import event_words
from leaderboard.pages.figures import chance, with_interval
from leaderboard.pages.labels import metric_value, ranked_by_heading
from leaderboard.pages.plots import histogram_svg
from leaderboard.pages.published_rows import as_sentence
from leaderboard.pages.queries import first_query
from leaderboard.pages.signature import signature_of
from leaderboard.pages.site import UNREAD, Page, Site, missing_page, shortened
from leaderboard.server.callers import readable
from leaderboard.standings import UNVERIFIED, Reference, reference_words
from leaderboard.standings.views import method_name, results_from, submission_view, why_not_listed
from leaderboard.store.submission import Submission
from submissions.scoring.score_report import is_rank

_AROUND = 2
"""Methods before an entry and behind it that are shown beside it."""


def page(site: Site, _query: Mapping[str, str], submission_id: str) -> Page:
    """The page.

    Args:
        site: of the server.
        submission_id: of an entry.
    """
    try:
        submission = readable(site.server, NOBODY, submission_id)
    except UploadRefusedError:
        return missing_page(
            "No such entry",
            f"There is no entry {shortened(submission_id)} here that everybody may read.",
            "It may have been withdrawn, or its owner keeps it private. Each board lists its entries.",
        )
    board = boards.find(submission.board)
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
        f"{score} on {board.title} by {name}: method, metrics, ranks, history, and how to cite it.",
        {
            "board": board,
            "row": row,
            "view": view,
            "name": name,
            "score": score,
            "word": file_word(board),
            "facts": [
                ("Reference image", reference_words(row["reference_evidence"])),
                *_facts(row["method"]),
            ],
            "metrics": _metrics_table(board, row),
            "signature": signature_of(submission, board),
            "happened": [{"at": event.at, "words": event_words(event)} for event in submission.events],
            "others": _others(board, rows, row),
            "block_words": table["blocks"][row["block"]],
            "unverified_words": UNVERIFIED,
            "has_ranks": any(is_rank(name) for name in row["metrics"]),
            "names": {each["submission"]: method_name(each) for each in rows},
            "query": first_query(site, board),
            **_looked_at(site, board, submission, row),
            "cite": citation(board, row, site.name, site.server.settings.url),
        },
    )


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
    """An entry's number with its interval, and its group."""
    value = with_interval(row["main"], row["interval"], board.primary_unit, board.step_of(board.primary))
    return f"{ranked_by_heading(board)} {value}, {_place(row, rows)}"


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
    for field, heading in package_yaml("leaderboard", "pages/entry_facts.yaml").items():
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
    return {"rows": rows, "folds": any(row["label"] for row in rows)}


def _metric_path(name: str) -> str:
    """Path of a metric's page; empty of a mean of several and of a suite's member."""
    try:
        return f"m/{parse_metric(name.removesuffix('@micro'))[0]}"
    except CirError:
        return ""


def _looked_at(site: Site, board: Board, submission: Submission, row: Mapping[str, Any]) -> dict[str, Any]:
    """What the entry's lists show, where readers may see them: protocol, ranks, turns, aspects."""
    server = site.server
    if not server.lists.shown(submission):
        return {"checked": [], "members": [], "parts": [], "unread": ""}
    lists, numbers = server.lists.of(submission), server.numbers.of(submission)
    checked = []
    if lists is not None:
        reference = Reference(**row["reference_evidence"])
        checked = protocol_findings(board, lists, reference, server.equals(submission))
    name = method_name(row)
    return {
        "checked": checked,
        "members": [] if numbers is None else [_member(board, name, each) for each in numbers],
        "parts": [] if numbers is None else parts_of(board, [(name, numbers)]),
        "unread": as_sentence(UNREAD) if lists is None else "",
    }


def _member(board: Board, name: str, numbers: MemberNumbers) -> dict[str, Any]:
    """Where an entry's right answers stand on one benchmark, as templates take it."""
    answers, best = _ranked_words(board)
    return {
        "benchmark": numbers.benchmark,
        "answers": answers,
        "best": best,
        "ranks": numbers.ranks,
        "ranks_plot": histogram_svg(
            [(each.label, each.share, f"{each.count:,}") for each in numbers.ranks],
            title=f"Where {answers} stand: {name}",
            description="The table below has the numbers.",
            x_label=f"rank of {best}",
            counted="sessions" if numbers.curve else "queries",
        ),
        "each": f"session, at its last {turn_word(board)}" if numbers.curve else "query",
    }


def _ranked_words(board: Board) -> tuple[str, str]:
    """What the ranks are of: in the plural, and of one query."""
    right = answer_words(board)
    if right == "the target":
        return "targets", right
    noun = right.partition(" ")[2]
    return f"{noun}s", f"the best {noun}"


def _others(board: Board, rows: list[Mapping[str, Any]], row: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry beats: its neighbours in its block, the leader, the best baseline, and chance."""
    inside = [each for each in rows if each["block"] == row["block"]]
    methods = [each for each in inside if not (each["baseline"] or each["is_oracle"])]
    sign = 1 if board.primary_direction == "higher" else -1
    place = sum(sign * each["main"] > sign * row["main"] for each in methods)
    near = methods[:1] + methods[max(place - _AROUND, 0) : place + _AROUND + 1]
    near += [each for each in inside if each["baseline"]][:1]
    shown = {each["submission"]: each for each in (*near, row)}
    listed = [each for each in inside if each["submission"] in shown]
    value = chance_level(board)
    behind = sum(sign * each["main"] < sign * row["main"] for each in methods)
    return {
        "said": f"before {behind} of {counted(len(methods) - (row in methods), 'other method')}",
        "rows": [_other(board, each, row) for each in listed],
        "chance": "" if value is None else chance(value, board.primary_unit),
    }


def _other(board: Board, other: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """An entry as a line beside another: `difference` is how much that one is above it."""
    scale, digits = (100, 2) if board.primary_unit == "percent" else (1, 1)
    own = other["submission"] == row["submission"]
    return {
        "id": other["submission"],
        "own": own,
        "name": method_name(other),
        "place": other["group"] or other["rank"] or ("baseline" if other["baseline"] else ""),
        "value": metric_value(board, board.primary, other["main"]),
        "difference": "" if own else f"{scale * (row['main'] - other['main']):+.{digits}f}",
    }
