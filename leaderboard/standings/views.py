"""What the API says about boards and submissions, as JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.intake.destination import board_offered
from leaderboard.standings import RANKED, Entry, block_words, checked_gallery
from leaderboard.store.submission import Event, Submission


@dataclass(frozen=True)
class Tested:
    """What tests and draws say of a board's entries.

    Args:
        groups: the rank group by submission; entries outside the groups are left out.
        intervals: low and high end of the main value's interval by submission, where it has one.
    """

    groups: Mapping[str, int] = field(default_factory=dict)
    intervals: Mapping[str, Sequence[float]] = field(default_factory=dict)


def board_view(
    board: Board,
    entries: int,
    max_upload_bytes: int,
    unavailable: str | None = None,
    paused: str | None = None,
) -> dict[str, Any]:
    """A board without its rows.

    Args:
        board: the board.
        entries: how many stand on it.
        max_upload_bytes: that the server takes of a file; the board may take less.
        unavailable: why submissions to it cannot be judged here, or None where they can.
        paused: why the organisers take none now, or None where they do.
    """
    return {
        "id": board.id,
        "title": board.title,
        "group": board.group,
        "benchmark": board.benchmark,
        "benchmark_version": board.version,
        "members": list(board.benchmarks) if board.takes_bundles else None,
        "track": board.track,
        "primary": board.primary,
        "direction": board.primary_direction,
        "columns": [column.model_dump() for column in board.columns],
        "description": board.description,
        "dialogue": None if board.dialogue is None else board.dialogue.model_dump(mode="json"),
        "protocol": {
            "queries": board.queries,
            "gallery": board.gallery,
            "reference": board.spec.config.reference,
        },
        "max_upload_bytes": board.max_upload_bytes(max_upload_bytes),
        "phases": [phase.model_dump(mode="json") for phase in board.phases],
        "closed": board.closed(datetime.now(UTC)),
        "unavailable": unavailable,
        "paused": paused,
        "entries": entries,
    }


def table_view(
    board: Board,
    entries: list[Entry],
    max_upload_bytes: int,
    unavailable: str | None = None,
    paused: str | None = None,
    tested: Tested | None = None,
    held: tuple[int, datetime | None] = (0, None),
) -> dict[str, Any]:
    """A board with its rows, best first.

    Args:
        board: the board.
        entries: from `standings`.
        max_upload_bytes: as in `board_view`.
        unavailable: as in `board_view`, and so is `paused`.
        paused: as in `board_view`.
        tested: groups and intervals; None where they are not made yet.
        held: from `held_back`.
    """
    count, moment = held
    view = board_view(board, len(entries) + count, max_upload_bytes, unavailable, paused)
    gallery = checked_gallery(board, entries)
    view["protocol"] |= {"gallery_checked": gallery is not None, "gallery_images": gallery}
    found = tested or Tested()
    ids = [entry.submission.id for entry in entries]
    rows = [
        entry.to_dict(found.groups.get(name), found.intervals.get(name))
        for entry, name in zip(entries, ids, strict=True)
    ]
    blocks = {block: block_words(board, block) for block in dict.fromkeys(entry.block for entry in entries)}
    view["blocks"] = blocks
    later = {"entries_held_back": count, "shown_from": None if moment is None else moment.isoformat()}
    return {**view, **later, "groups_pending": tested is None, "rows": rows}


def held_back_words(view: Mapping[str, Any]) -> str:
    """A sentence on entries whose results are not shown yet; empty where there are none.

    Args:
        view: from `table_view`.

    Example:
        >>> held_back_words({"entries_held_back": 3, "shown_from": "2027-01-08T00:00:00+00:00"})
        '3 entries, shown from 2027-01-08 at 00:00 UTC.'
    """
    count = view["entries_held_back"]
    if not count:
        return ""
    moment = datetime.fromisoformat(view["shown_from"])
    return f"{count} {'entry' if count == 1 else 'entries'}, shown from {moment:%Y-%m-%d at %H:%M} UTC."


def state_words(view: Mapping[str, Any]) -> str:
    """`open`, or why files sent to a board now are not judged, in a few words.

    Args:
        view: from `table_view`, or its three parts alone.

    Example:
        >>> state_words({"closed": None, "paused": None, "unavailable": "a.json is not here. Its ..."})
        'no data: a.json is not here'
    """
    if view["closed"]:
        return f"closed: {view['closed'].rstrip('.')}"
    if view["paused"]:
        return f"paused: {view['paused'].rstrip('.')}"
    if view["unavailable"]:
        return f"no data: {view['unavailable'].partition('. ')[0].rstrip('.')}"
    return "open"


def takes_files(view: Mapping[str, Any]) -> bool:
    """Whether files sent to a board now are judged.

    Args:
        view: as for `state_words`.
    """
    return state_words(view) == "open"


def method_name(row: Mapping[str, Any]) -> str:
    """The name of a row's method, `unnamed` where it has none.

    Args:
        row: of a board's table.
    """
    return str(row["method"].get("name", "unnamed"))


def compared_rows(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Methods and baselines of the first block: these alone are better or worse than each other.

    Args:
        rows: of a board's table.
    """
    found = [row for row in rows if row["block"] in RANKED and not row["is_oracle"]]
    return [row for row in found if row["block"] == found[0]["block"]]


def group_leaders(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The first row of each rank group, in the order of the groups.

    Args:
        rows: of a board's table.
    """
    found: dict[int, Mapping[str, Any]] = {}
    for row in compared_rows(rows):
        if row["group"] is not None:
            found.setdefault(row["group"], row)
    return [found[number] for number in sorted(found)]


def submission_view(
    submission: Submission, *, organiser: bool = False, owner: bool = False
) -> dict[str, Any]:
    """A submission: its state, what validation found, and its scores.

    Args:
        submission: from the store.
        owner: whether its owner reads it, who sees what their corrections changed; organisers do, too.
        organiser: whether organisers read it, who see what is not for others: the file of an entry on a
            sealed board, and results before their phase has closed.
    """
    judged = submission.last("validated", "rejected")
    board = boards.find(submission.board)
    # Of a board that is not here, nobody knows what it holds back.
    sealed, hidden_until = board is None or board.sealed, _results_from(board, submission)
    public, removed = submission.state == "published", submission.file_removed_at
    private, same = submission.last("private"), submission.last("superseded")
    is_rejected = submission.state == "rejected"
    offered = board_offered(submission.board, submission.findings) if is_rejected else None
    return {
        "id": submission.id,
        "board": submission.board,
        "state": submission.state,
        "finished": submission.finished,
        "received_at": submission.received_at.isoformat(),
        "sha256": submission.sha256,
        "size": submission.size,
        "file_name": submission.file_name,
        "submitter": submission.submitter,
        "baseline": submission.baseline,
        "method": submission.method,
        "file_removed_at": None if removed is None else removed.isoformat(),
        "findings": submission.findings,
        "findings_text": "" if judged is None else judged.payload.get("text", ""),
        "message": why_not_listed(submission),
        "board_offered": None if offered is None else offered.id,
        "kept_private": None if private is None else private.payload.get("reason"),
        "same_as": None if same is None or not same.payload.get("same_rankings") else same.payload["by"],
        "verified": submission.verified,
        "flag": submission.flag,
        "scores": submission.scores if organiser else _told(board, submission),
        "scores_from": None if hidden_until is None else hidden_until.isoformat(),
        "events": [_event_view(event, whole=organiser or owner) for event in submission.events],
        "page": entry_page(submission.board, submission.id),
        "outcome_page": submission_page(submission.id),
        "file": f"/api/submissions/{submission.id}/file" if public and (organiser or not sealed) else None,
    }


def _event_view(event: Event, *, whole: bool) -> dict[str, Any]:
    """What happened; of a correction which fields, and the name before and after, or all that changed."""
    corrected = event.payload if event.kind == "corrected" else {}
    return {
        "kind": event.kind,
        "at": event.at.isoformat(),
        "fields": corrected.get("fields"),
        "name": corrected.get("name"),
        "changes": corrected.get("changes") if whole else None,
    }


def _told(board: Board | None, submission: Submission) -> dict[str, Any] | None:
    if board is None or submission.scores is None or _results_from(board, submission) is not None:
        return None
    return board.told(submission.scores)


def results_are_shown(submission: Submission) -> bool:
    """Whether everybody may read a submission's result: its board is here, and shows it now.

    Args:
        submission: a judged one.
    """
    return boards.find(submission.board) is not None and results_from(submission) is None


def results_from(submission: Submission) -> datetime | None:
    """When a submission's result is shown, while it is not yet; None where it is shown now."""
    return _results_from(boards.find(submission.board), submission)


def _results_from(board: Board | None, submission: Submission) -> datetime | None:
    if board is None or submission.baseline:
        return None
    moment = board.shown_from(submission.received_at)
    return moment if moment is not None and moment > datetime.now(UTC) else None


def why_not_listed(submission: Submission) -> str | None:
    """A sentence on why a judged submission stands on no board; None where it does, waits or is refused."""
    last = submission.events[-1].payload if submission.events else {}
    if submission.state == "published":
        until = results_from(submission)
        if until is None:
            return None
        return f"It is scored; results are shown when its phase has closed, on {until:%Y-%m-%d at %H:%M} UTC."
    if submission.state == "failed":
        return str(last["message"])
    if submission.state == "private":
        if reason := _kept_private_for(submission):
            said = f"{reason['message']} Fix: {reason['fix']}, then publish it."
            return f"It is scored, but not on the board: {said}"
        if submission.last("published") is not None:
            return "It is scored, but not on the board: it was taken off."
        return "It is scored, but not on the board: it has not been published."
    if submission.state == "superseded":
        superseded = submission.last("superseded")
        found = {} if superseded is None else superseded.payload
        if found.get("hidden"):
            return (
                f"The organisers have hidden submission {found['by']}, which has the same rankings: "
                f"{found.get('reason', '')!r}. They stay off the board until that one is restored; then send "
                "the file again."
            )
        if found.get("same_rankings"):
            return f"Submission {found['by']} has the same rankings; correct that one to change its words."
        return f"Submission {found.get('by', '')} has taken its place."
    if submission.state == "withdrawn":
        return "Its owner has withdrawn it."
    if submission.state == "hidden":
        return f"The organisers have hidden it: {submission.why_hidden}"
    return None


def _kept_private_for(submission: Submission) -> dict[str, Any]:
    """Why a submission could not be published as it is; empty where it was not asked for, or can be."""
    private = submission.last("private")
    return {} if private is None else private.payload.get("reason") or {}


def already_here(submission: Submission) -> str:
    """What is said to whoever sends a file again that is here already: which submission it is."""
    method = submission.method or submission.form
    declared, name = method.get("reference"), method.get("name")
    which = f"{submission.id}, {name!r}" if name else submission.id
    said = [f"You sent this file before, on {submission.received_at:%Y-%m-%d}: it is submission {which}."]
    if declared:
        said.append(f"It declares that the reference was {declared}.")
    if submission.state == "published":
        said.append(f"It is on that board already; its words are corrected on its page, /s/{submission.id}.")
    elif submission.state == "rejected":
        said.append("It was refused then, and nothing beside it is other than then.")
    elif not submission.finished:
        said.append("It waits to be judged.")
    else:
        said.append(why_not_listed(submission) or "")
    if submission.state == "private" and not _kept_private_for(submission):
        said.append(f"Publish it on its page, /s/{submission.id}, or send it again to be published.")
    return " ".join(said)


def submission_page(submission_id: str, edit_key: str = "") -> str:
    """Address of a submission's own page, relative to the server's root.

    Args:
        submission_id: the submission's id.
        edit_key: makes it a private link. It stands behind the #, which browsers send to nobody.

    Example:
        >>> submission_page("289f32ba7118", "edit_abc")
        '/s/289f32ba7118#edit_abc'
    """
    address = f"/s/{quote(submission_id, safe='')}"
    return f"{address}#{edit_key}" if edit_key else address


def entry_page(board_id: str, submission_id: str | None = None) -> str:
    """Address of a board's page, with one entry in view and marked, relative to the server's root.

    Example:
        >>> entry_page("cirr/val", "289f32ba7118")
        '/b/cirr/val?entry=289f32ba7118#entry-289f32ba7118'
    """
    address = f"/b/{quote(board_id)}"
    if submission_id is None:
        return address
    return f"{address}?{urlencode({'entry': submission_id})}#entry-{quote(submission_id)}"
