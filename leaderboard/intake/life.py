"""What may happen to a submission after it was judged, who may do it, and what that leads to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa

from leaderboard import boards
from leaderboard.errors import UploadRefusedError
from leaderboard.identity import Caller, matches
from leaderboard.store import Happened, Store
from leaderboard.store.submission import ERASED, By, EventKind, State, Submission
from submissions.rank_file.texts import is_oracle

Action = Literal[
    "publish",
    "unpublish",
    "correct",
    "withdraw",
    "hide",
    "restore",
    "verify",
    "unverify",
    "flag",
    "unflag",
    "rerun",
    "erase",
]


@dataclass(frozen=True)
class _Rule:
    """Who may do something, and in which states."""

    by: By
    states: tuple[State, ...]
    event: EventKind


_JUDGED: tuple[State, ...] = ("published", "private")
RULES: Mapping[Action, _Rule] = {
    "publish": _Rule("owner", ("private",), "published"),
    "unpublish": _Rule("owner", ("published",), "private"),
    "correct": _Rule("owner", _JUDGED, "corrected"),
    "withdraw": _Rule("owner", (*_JUDGED, "received", "validated", "hidden"), "withdrawn"),
    "hide": _Rule("organiser", _JUDGED, "hidden"),
    "restore": _Rule("organiser", ("hidden", "withdrawn", "superseded"), "restored"),
    "verify": _Rule("organiser", _JUDGED, "verified"),
    "unverify": _Rule("organiser", (*_JUDGED, "hidden"), "unverified"),
    "flag": _Rule("organiser", (*_JUDGED, "hidden"), "flagged"),
    "unflag": _Rule("organiser", (*_JUDGED, "hidden"), "unflagged"),
    "rerun": _Rule("organiser", ("failed", "rejected"), "rerun"),
    "erase": _Rule(
        "organiser",
        ("rejected", "failed", "published", "private", "withdrawn", "superseded", "hidden"),
        "erased",
    ),
}
"""By action: who may take it (organisers may take all), in which states, and its event."""

ACTS_A_DAY = 50
"""Events that its owner may add to a submission in a UTC day, since the log is kept for ever."""

_NOT_VERIFIED = {"notes"}
"""Fields that may be corrected while `verified` stays."""


def may(caller: Caller, submission: Submission, teams: tuple[str, ...] = ()) -> By | None:
    """As whom a caller may change a submission, or None where they may not.

    Args:
        caller: who calls.
        submission: what they want to change.
        teams: the teams that they may act for, as owners.
    """
    if caller.is_organiser:
        return "organiser"
    if submission.owner and submission.owner in (caller.owner, *teams):
        return "owner"
    if matches(caller.edit_key, submission.edit_hash):
        return "owner"
    return None


def act(
    store: Store,
    submission: Submission,
    action: Action,
    by: By,
    *,
    reason: str = "",
    method: Mapping[str, Any] | None = None,
    submitter: str | None = None,
) -> Submission:
    """Do something to a submission, with its event.

    Args:
        store: where it is.
        submission: as it was read.
        action: one of `RULES`.
        by: as whom, from `may`.
        reason: why: needed to hide and to flag, shown to its owner.
        method: for `correct`: the fields as they are to be shown, checked.
        submitter: for `correct`: who submits, checked; None leaves it.

    Returns:
        The submission as it stands then.

    Raises:
        UploadRefusedError: the caller may not do that, the state forbids it, a reason is missing, or the
            method's name belongs to another owner or its words contradict each other or what its lists show
            of the reference, or its owner has changed it too often today.
        ConflictError: something else happened to it meanwhile.
    """
    rule = RULES[action]
    if rule.by == "organiser" and by != "organiser":
        raise UploadRefusedError.of("not-allowed/action", action=action)
    judged_anew = action == "rerun" and submission.last("erased") is not None
    if submission.state not in rule.states or judged_anew:
        raise UploadRefusedError.of(
            "wrong-state/action", submission=submission, action=action, states=" or ".join(rule.states)
        )
    if action in ("hide", "flag") and not reason:
        raise UploadRefusedError.of("missing-reason", action=action)
    columns: dict[str, Any] = {}
    payload: dict[str, Any] = {"reason": reason} if reason else {}
    if action == "restore":
        payload["to"] = _before(submission)
    elif action == "correct":
        columns, payload = _corrections(submission, method, submitter)
        if not columns:
            return submission
        if by == "owner":
            _refuse_against_file(submission, columns.get("method"))
    elif action == "erase":
        columns = {
            "submitter": ERASED,
            "owner": f"erased:{submission.id}",
            "edit_hash": None,
            "file_name": ERASED,
            "form": {},
        }
        if submission.method is not None:
            personal = ("name", "paper", "code", "notes")
            left = {key: value for key, value in submission.method.items() if key not in personal}
            columns["method"] = {"name": f"{ERASED} {submission.id}", **left}
    # One can always withdraw, and only once.
    if by == "owner" and action != "withdraw":
        _refuse_too_many(submission)
    happened: list[Happened] = [(rule.event, payload)]
    if "reference" in payload.get("changes", {}):
        declared = columns["method"].get("reference", "")
        from leaderboard.intake.declaring import with_declaration

        report = with_declaration(boards.board(submission.board), submission, declared)
        happened.append(("rescored", {"report": report}))
    if action == "correct" and submission.verified and set(payload["fields"]) - _NOT_VERIFIED:
        happened.append(("unverified", {"corrected": payload["fields"]}))
    shown = method if method is not None else submission.method
    stands = action == "publish" or (action == "correct" and submission.state == "published")
    if not stands and action != "restore":
        return store.append(submission, happened, by=by, **columns)
    if stands or payload.get("to") == "published":
        refuse_contradiction(submission, shown)

    def decide(connection: sa.Connection) -> list[Happened]:
        if action == "publish":
            _refuse_hidden_rankings(store, submission, connection)
        if action == "restore":
            _refuse_same_rankings(store, submission, connection)
        if stands or payload.get("to") == "published":
            refuse_taken_name(store, submission, shown, connection)
        return happened

    return store.append(submission, decide, by=by, **columns)


def _refuse_too_many(submission: Submission) -> None:
    """Refuse one more event of an owner where they have added all of a day.

    The count is exact: of two events that follow the same last one, the store takes one.

    Raises:
        UploadRefusedError: `too-many`.
    """
    now = datetime.now(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    acts = [event for event in submission.events[1:] if event.by == "owner" and event.at >= midnight]
    if len(acts) >= ACTS_A_DAY:
        following = midnight + timedelta(days=1)
        raise UploadRefusedError.of(
            "too-many/acts", submission=submission, acts=len(acts), most=ACTS_A_DAY, resets_at=following
        )


def refuse_taken_name(
    store: Store, submission: Submission, method: Mapping[str, Any] | None, connection: sa.Connection
) -> None:
    """Refuse a method's name that looks like that of another owner's entry, or a baseline, on the board.

    Args:
        store: where the entries are.
        submission: what is to stand there.
        method: its fields.
        connection: the transaction that puts it there, which holds the board.

    Raises:
        UploadRefusedError: `name-taken`.
    """
    name = str((method or {}).get("name", ""))
    for first in store.named(submission.board, name, connection)[:1]:
        if first.owner == submission.owner and first.baseline == submission.baseline:
            continue
        whose = "a baseline of the organisers" if first.baseline else "another owner's entry"
        raise UploadRefusedError.of("name-taken", name=name[:80], whose=whose, board=submission.board)


def same_rankings(
    store: Store, submission: Submission, canonical: str, connection: sa.Connection | None
) -> Submission | None:
    """An entry of the same owner with the same rankings in the same phase of the board, or None."""
    board = None if submission.baseline else boards.find(submission.board)
    since = None if board is None else board.phase_began(submission.received_at)
    return store.same_rankings(submission, canonical, connection, since=since)


def _refuse_hidden_rankings(store: Store, submission: Submission, connection: sa.Connection) -> None:
    """Refuse to publish rankings that organisers have hidden in another submission."""
    off = (
        None if submission.canonical is None else store.kept_off(submission, submission.canonical, connection)
    )
    if off is not None:
        raise UploadRefusedError.of("hidden-rankings", off=off)


def _refuse_against_file(submission: Submission, method: Mapping[str, Any] | None) -> None:
    """Refuse words of an owner that take back what the file itself says against its method.

    Raises:
        UploadRefusedError: `against-file`.
    """
    validated = submission.last("validated")
    claims: Mapping[str, Any] = (validated.payload.get("claims") if validated else None) or {}
    before = submission.method or {}
    for name, said in claims.items():
        now = (method or before).get(name)
        if now == before.get(name):
            continue
        taken_back = (
            (name == "oracle" and is_oracle({name: said}) and now != said)
            or (name == "zero_shot" and said is False and now is not False)
            or (name == "trained_on" and not set(said) <= set(now or ()))
            or name == "reference"
        )
        if taken_back:
            raise UploadRefusedError.of(
                "against-file", name=name, said=json.dumps(said, ensure_ascii=False)[:200]
            )


def _refuse_same_rankings(store: Store, submission: Submission, connection: sa.Connection) -> None:
    """Refuse to restore what its owner has sent again, since that stands now."""
    if submission.canonical is None:
        return
    same = same_rankings(store, submission, submission.canonical, connection)
    if same is not None:
        raise UploadRefusedError.of("same-rankings", same=same)


def refuse_contradiction(submission: Submission, method: Mapping[str, Any] | None) -> None:
    """Refuse words that contradict each other, such as zero-shot and trained on the benchmark's own data.

    Raises:
        UploadRefusedError: `contradiction`.
    """
    board = boards.find(submission.board)
    if board is None:
        return  # a board that was removed shows nobody's words
    from submissions.rank_file.findings import Findings
    from submissions.validation import CODE, check_words

    for spec in board.specs:
        findings = Findings(submission.file_name, spec.id)
        check_words(method or {}, spec, findings)
        for finding in findings.listed():
            raise UploadRefusedError(CODE, finding.message, fix=finding.fix, status=409)


def _before(submission: Submission) -> State:
    """The last state of a submission in which it was judged and neither hidden, withdrawn nor superseded."""
    for event in reversed(submission.events):
        if event.kind in ("published", "private"):
            return "published" if event.kind == "published" else "private"
    raise UploadRefusedError.of("wrong-state/never-judged", submission=submission)


def _corrections(
    submission: Submission, method: Mapping[str, Any] | None, submitter: str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns that change, and the event's payload: fields, old and new, and the name that was public."""
    columns: dict[str, Any] = {}
    changes: dict[str, dict[str, Any]] = {}
    before = submission.method or {}
    if method is not None and dict(method) != before:
        columns["method"] = dict(method)
        for key in sorted({*before, *method}):
            if before.get(key) != method.get(key):
                changes[key] = {"old": before.get(key), "new": method.get(key)}
    if submitter is not None and submitter != submission.submitter:
        columns["submitter"] = submitter
        changes["submitter"] = {"old": submission.submitter, "new": submitter}
    payload: dict[str, Any] = {"fields": list(changes), "changes": changes}
    if "name" in changes and submission.last("published") is not None:
        # Nobody else is shown a name that was never public.
        payload["name"] = {when: str(name) for when, name in changes["name"].items()}
    return columns, payload
