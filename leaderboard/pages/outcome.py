"""What became of a submission, as HTML: the findings of the command line as a table, or the score."""

from __future__ import annotations

from typing import Any

from leaderboard.boards import Board, all_metrics
from leaderboard.errors import UploadRefusedError
from leaderboard.pages.layout import number
from leaderboard.pages.markup import element, joined, text
from leaderboard.submission import Submission
from leaderboard.views import entry_page, results_from, why_not_listed
from submissions.scoring.score_report import shown_value

_WAITING = {
    "received": "Received and stored. Checking every ranking…",
    "validated": "The file is valid. Scoring…",
    "scored": "Scored. Putting it on the board…",
}


def progress_html(message: str) -> str:
    """A line for a step that is under way."""
    return element("div", element("p", text(message), "step"), "outcome waiting", role="status")


def refusal_html(error: UploadRefusedError) -> str:
    """Why an upload did not become a submission."""
    finding = {"code": error.code, "severity": "error", "message": error.message, "fix": error.fix}
    head = element("h3", "Not accepted")
    return element("div", head + findings_table([finding]), "outcome bad", role="alert")


def outcome_html(submission: Submission, board: Board) -> str:
    """A submission's outcome, whatever its state."""
    if submission.state == "rejected":
        return _rejected(submission)
    why = why_not_listed(submission)
    shown = submission.scores is not None and results_from(submission) is None
    if submission.state == "private" and shown:
        return _scored(submission, board, text(why))
    if why is not None:
        head = element("h3", "Not judged" if submission.state == "failed" else "Not on the board")
        return element("div", head + element("p", text(why)), "outcome bad", role="alert")
    if submission.state != "published":
        return progress_html(_WAITING.get(submission.state, submission.state))
    way = text(f"See it on the board {board.title}")
    address = f".{entry_page(board.id, submission.id)}"
    return _scored(submission, board, element("a", way, "to-board", href=address))


def findings_table(findings: list[dict[str, Any]]) -> str:
    """Findings as a table: code and severity, where, what is wrong, what to do."""
    titles = joined(
        element("th", title, scope="col") for title in ("Finding", "Query", "What is wrong", "Fix")
    )
    rows = joined(_finding_row(finding) for finding in findings)
    table = element("table", element("thead", element("tr", titles)) + element("tbody", rows), "findings")
    return element("div", table, "table-scroll")


def _finding_row(finding: dict[str, Any]) -> str:
    severity = str(finding["severity"])
    code = element("code", text(finding["code"])) + element("span", text(severity), f"severity {severity}")
    where = _places(finding)
    count = int(finding.get("count") or 1)
    times = element("span", f"{count:,} places", "count") if count > 1 else ""
    cells = (code, where, element("span", text(finding["message"])) + times, text(finding["fix"]))
    names = ("code", "where", "what", "fix")
    return element("tr", joined(element("td", cell, name) for name, cell in zip(names, cells, strict=True)))


def _places(finding: dict[str, Any]) -> str:
    """The queries where it was found, up to five."""
    places: list[str] = []
    for example in finding.get("examples") or ():
        query = example.get("query_id")
        if query is None:
            continue
        turn = f", turn {example['turn']}" if example.get("turn") is not None else ""
        place = f"{str(query)[:60]}{turn}"
        if place not in places:
            places.append(place)
    return joined(element("div", text(place)) for place in places) or "–"


def file_word(board: Board) -> str:
    """What a board takes: a rank file, a bundle or a transcript."""
    if board.dialogue is not None:
        return "transcript"
    return "rank file" if board.suite is None else "bundle"


def _members_table(report: dict[str, Any]) -> str:
    """The metrics of a suite's members, a row each; empty where it is not a suite."""
    runs = report.get("runs", ())
    if not runs:
        return ""
    names = list(runs[0]["metrics"])
    heads = element("th", "Member", scope="col")
    heads += joined(element("th", text(name), "num", scope="col") for name in names)
    rows = joined(
        element(
            "tr",
            element("th", text(run["benchmark"]), scope="row")
            + joined(
                element("td", shown_value(name, run["metrics"].get(name)).strip(), "num") for name in names
            ),
        )
        for run in runs
    )
    table = element(
        "table", element("thead", element("tr", heads)) + element("tbody", rows), "standings members"
    )
    return element("div", table, "table-scroll")


def _rejected(submission: Submission) -> str:
    findings = submission.findings
    errors = sum(finding["severity"] == "error" for finding in findings)
    head = element("h3", f"Refused: {errors} {'error' if errors == 1 else 'errors'}")
    where = text(submission.file_name)
    said = element("p", f"{where} is not on the board. These are the findings that cir validate prints, too.")
    return element("div", head + said + findings_table(findings), "outcome bad", role="alert")


def _scored(submission: Submission, board: Board, where: str) -> str:
    report = submission.scores or {}
    metrics = all_metrics(report)
    name = str((submission.method or {}).get("name", "unnamed"))
    value = number(board.primary_value(metrics), board.primary_unit)
    figures = [_figure(board.primary_label, value, "main")]
    figures += [
        _figure(column.label, number(metrics.get(column.metric), column.unit), "") for column in board.columns
    ]
    signature = report["signatures"][board.primary_terms[0]]["text"]
    warnings = findings_table(submission.findings) if submission.findings else ""
    body = (
        element("h3", f"Scored: {text(name)}")
        + element("div", joined(figures), "figures")
        + element("p", text(signature), "signature")
        + element("p", where)
        + _members_table(report)
        + warnings
    )
    return element("div", body, "outcome good", role="status")


def _figure(label: str, value: str, css: str) -> str:
    return element(
        "div", element("span", text(label), "label") + element("span", value, "value"), f"figure {css}"
    )
