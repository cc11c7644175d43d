"""The page of one submission; for its owner with the form of its words, the actions and the receipt.

The key of a private link stands behind the # of the address, which a browser sends to no server, and so to no
log and in no `Referer`. The page's own script sends it as a header, and is answered with the owner's page.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leaderboard import boards
from leaderboard.boards import Board, all_metrics
from leaderboard.errors import UploadRefusedError
from leaderboard.intake.destination import board_offered
from leaderboard.pages import owner_form
from leaderboard.pages.event_words import event_words
from leaderboard.pages.findings import grouped
from leaderboard.pages.labels import metric_value
from leaderboard.pages.site import Page, Site
from leaderboard.server import suite_bundles
from leaderboard.standings.views import (
    already_here,
    results_are_shown,
    results_from,
    submission_view,
    why_not_listed,
)
from leaderboard.store.submission import By, Submission
from submissions.scoring.score_report import shown_value

_WAITING = {
    "received": "Received and stored. Checking every ranking…",
    "validated": "The file is valid. Scoring…",
    "scored": "Scored. Putting it on the board…",
}
_STATES = {
    "received": "waits",
    "validated": "waits",
    "scored": "waits",
    "rejected": "refused",
    "failed": "not judged",
}
"""What a state is called in the window's title, where not by its own name."""
_BY: dict[By, str] = {"server": "", "owner": ", by its owner", "organiser": ", by the organisers"}


@dataclass(frozen=True)
class Verdict:
    """What became of a submission.

    Args:
        kind: `good`, `bad` or `waiting`.
        head: its heading.
        words: the state in a sentence.
        scored: whether its figures are shown.
    """

    kind: str
    head: str
    words: str
    scored: bool = False


def page(
    site: Site,
    submission: Submission,
    by: By | None = None,
    *,
    with_key: bool = False,
    again: bool = False,
) -> Page:
    """The page.

    Args:
        site: of the server.
        submission: one that the reader may read.
        by: as whom the reader may change it, or None.
        with_key: whether the reader came by its private link.
        again: whether its owner has sent the file once more.
    """
    server, is_owner = site.server, by is not None
    board = boards.find(submission.board)
    view = submission_view(submission, owner=is_owner)
    found = outcome(submission, board)
    movable = is_owner and submission.state == "rejected" and submission.file_removed_at is None
    right = board_offered(submission.board, submission.findings) if movable else None
    title = f"Submission {submission.id}: {_STATES.get(submission.state, submission.state)}"
    report = view["scores"] or {}
    values = {
        "one": submission,
        "board": board,
        "outcome": found,
        "again": already_here(submission) if again else "",
        "file": view["file"],
        "figures": _figures(report, board) if found.scored and board is not None else [],
        "signature": report["signatures"][board.primary_terms[0]]["text"] if found.scored and board else "",
        "members": _members(report) if found.scored else None,
        "stands": submission.state == "published" and results_are_shown(submission),
        "groups": grouped(submission.findings) if submission.state == "rejected" or found.scored else [],
        "explanation": _explanation(submission, board) if is_owner else "",
        "equals": server.equals(submission),
        "events": _events(submission, is_owner=is_owner),
        "moment": moment,
        "is_owner": is_owner,
        "promise": owner_form.link_promise(submission) if is_owner and with_key else "",
        "right": right,
        "bundle": suite_bundles.offered(server, submission) if is_owner else None,
        "actions": owner_form.offered(submission) if is_owner else [],
        "fields": owner_form.fields(),
        "words": owner_form.words_of(submission),
        "durability": server.durability(submission) if is_owner and server.log is not None else "",
        "receipt": server.receipt(submission).to_bytes().decode() if is_owner else "",
    }
    return Page("submission.html", title, found.words[:160], values, section="submit")


def closed_page(error: UploadRefusedError, submission_id: str) -> Page:
    """The page in the place of a submission that there is not, or that its reader may not read.

    Args:
        error: what refused it; it does not say which of the two.
        submission_id: the one asked for.
    """
    values = {"message": error.message, "fix": error.fix, "submission_id": submission_id}
    words = "A submission that is not public, or that does not exist."
    return Page("submission_closed.html", "No such submission", words, values, error.status, section="submit")


def outcome(submission: Submission, board: Board | None) -> Verdict:
    """What is said of a submission, whatever its state.

    Args:
        submission: in any state.
        board: its board, or None where that was removed.
    """
    state = submission.state
    if board is None:
        return Verdict("bad", "No board", f"Its board was removed; the submission is {state}.")
    if state == "rejected":
        errors = sum(finding["severity"] == "error" for finding in submission.findings)
        head = f"Refused: {errors} {'error' if errors == 1 else 'errors'}"
        said = "is not on the board. These are the findings that cir validate prints, too."
        return Verdict("bad", head, f"{submission.file_name} {said}")
    name = str((submission.method or {}).get("name", "unnamed"))
    why = why_not_listed(submission)
    shown = submission.scores is not None and results_from(submission) is None
    if state == "private" and shown:
        return Verdict("good", f"Scored: {name}", str(why), scored=True)
    if state == "published" and results_from(submission) is not None:
        return Verdict("good", f"Accepted: {name}", str(why))
    if why is not None:
        return Verdict("bad", "Not judged" if state == "failed" else "Not on the board", why)
    if state != "published":
        return Verdict("waiting", "Being judged", _WAITING.get(state, state))
    return Verdict("good", f"Scored: {name}", f"It stands on the board {board.title}.", scored=shown)


def moment(at: datetime) -> str:
    """A moment as pages write it, UTC.

    Example:
        >>> from datetime import UTC
        >>> moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
        '2026-01-02 03:04:05 UTC'
    """
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _figures(report: dict[str, Any], board: Board) -> list[tuple[str, str]]:
    """What the board shows of a score, the value that ranks first."""
    metrics = all_metrics(report)
    values = {**metrics, board.primary: board.primary_value(metrics)}
    return [
        (label, metric_value(board, metric, values.get(metric))) for metric, label in board.labels.items()
    ]


def _explanation(submission: Submission, board: Board | None) -> str:
    """What a refused file says, for its owner; a board that holds results back tells no numbers before."""
    refused = submission.last("rejected")
    if submission.state != "rejected" or refused is None or board is None or board.sealed:
        return ""
    return str(refused.payload.get("explanation", "")) if results_are_shown(submission) else ""


def _members(report: dict[str, Any]) -> dict[str, Any] | None:
    """The metrics of a suite's members, a row each; None where it is not a suite."""
    runs = report.get("runs", ())
    if not runs:
        return None
    names = list(runs[0]["metrics"])
    rows = [
        (run["benchmark"], [shown_value(name, run["metrics"].get(name)).strip() for name in names])
        for run in runs
    ]
    return {"names": names, "rows": rows}


def _events(submission: Submission, *, is_owner: bool) -> list[tuple[str, str, list[str]]]:
    """What happened, when and by whom; of a correction, for its owner, each field before and after."""
    listed: list[tuple[str, str, list[str]]] = []
    views = submission_view(submission, owner=is_owner)["events"]
    for event, seen in zip(submission.events, views, strict=True):
        changes = seen["changes"] or ({"name": seen["name"]} if seen["name"] else {})
        said = [
            f"{name}: {_word(change['old'])} → {_word(change['new'])}" for name, change in changes.items()
        ]
        listed.append((event_words(event), f"{moment(event.at)}{_BY[event.by]}", said))
    return listed


def _word(value: Any) -> str:
    """A field's value in a history."""
    if value in (None, "", []):
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
