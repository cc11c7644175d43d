"""What the API answers and takes, as schemas of its OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from leaderboard.boards import Column, Phase
from leaderboard.dialogues import BoardDialogue
from leaderboard.identity.receipts import Receipt
from leaderboard.settings import Durability
from leaderboard.standings import Block, Reference
from leaderboard.store.submission import EventKind, State
from submissions.rank_file.model import declared_fields
from submissions.rank_file.texts import LISTED_FIELDS

Fraction = Annotated[float, Field(description="a fraction, or a rank where the metric is one")]


_Durability = Annotated[
    Durability,
    Field(description="journalled: on the server's disk; committed: in its log on the Hub, as it stands now"),
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ErrorAnswer(_Strict):
    """What is wrong, and what the client can do."""

    code: str = Field(description="a word that programs may rely on")
    message: str
    fix: str
    resets_at: datetime | None = Field(
        default=None, description="when a limit that was met ends; only where one was"
    )
    board_offered: str | None = Field(
        default=None, description="the board that the file names; only where it was sent to another"
    )


class FailureAnswer(_Strict):
    """Every answer of 400 and more."""

    error: ErrorAnswer


class WorkerAnswer(_Strict):
    """A process that judges."""

    version: str
    seen_at: datetime = Field(description="when it last showed that it lives")
    alive: bool = Field(description="whether that is less than a lease ago; else it is gone")


class StepAnswer(_Strict):
    """A benchmark that the server prepares when it starts, or a repository that it reads."""

    name: str
    state: Literal["waiting", "preparing", "ready", "failed"]
    message: str = Field(description="why it failed; it is tried again")


class HealthAnswer(_Strict):
    """Whether the server lives and its store answers."""

    status: Annotated[
        Literal["ok", "disk-full"], Field(description="whether there is room for a file as large as may come")
    ]
    version: str
    boards: int
    wrong_boards: list[str] = Field(description="the organisers' files of boards that are wrong")
    max_upload_bytes: int
    lost_files: list[str] = Field(
        description="sha256 of rank files that were missing or damaged when last looked at"
    )
    preparing: list[StepAnswer] = Field(description="what CIR_PREPARE names, and how far it is")
    reads_only: bool = Field(description="another server writes the log: nothing is taken here")
    lasts: bool = Field(description="whether entries are there after a restart")
    alarms: list[str] = Field(description="what everybody must know who looks at this leaderboard")
    waiting: int = Field(description="submissions that are not judged yet")
    oldest_waiting: datetime | None = Field(description="when the oldest of them came")
    last_scored: datetime | None = Field(description="when a file was scored last")
    workers: list[WorkerAnswer] = Field(description="those that judge, or did so lately")
    free_bytes: int = Field(description="free space where the server keeps its state")


class ProtocolAnswer(_Strict):
    """What a board's benchmark asks; of a suite, what its members ask together."""

    queries: int | None
    gallery: int | None
    reference: str


class CheckedProtocolAnswer(ProtocolAnswer):
    """What a board's benchmark asks, and what its entries were checked against."""

    gallery_checked: bool
    gallery_images: int | None = Field(description="images that ids were checked against")


class BoardAnswer(_Strict):
    """A board without its rows."""

    id: str
    title: str
    group: str = Field(description="the heading below which it is listed")
    benchmark: str = Field(description="its benchmark; or its suite, then the board takes bundles")
    benchmark_version: int | str
    members: list[str] | None = Field(
        description="of a suite the benchmarks that a bundle answers; else null"
    )
    track: str
    primary: str = Field(description="what ranks: a metric or mean(a, b)")
    direction: Literal["higher", "lower"]
    columns: list[Column]
    description: str
    dialogue: BoardDialogue | None = Field(
        description="of a board of transcripts, how these are made; else null"
    )
    protocol: ProtocolAnswer
    max_upload_bytes: int = Field(description="that a rank file for this board may have")
    phases: list[Phase] = Field(description="when it takes submissions; always where there are none")
    closed: str | None = Field(description="why no phase is open now, or null")
    unavailable: str | None = Field(description="why submissions cannot be judged here, or null")
    paused: str | None = Field(description="why the organisers take none now, or null")
    entries: int


class BoardsAnswer(_Strict):
    """All boards."""

    boards: list[BoardAnswer]


class RowAnswer(_Strict):
    """An entry on a board."""

    rank: int | None = Field(
        description="among its block's methods; null for baselines, for oracles and in some blocks"
    )
    group: int | None = Field(
        description="rank group: tests cannot tell its methods from its leader; null outside the groups"
    )
    block: Block = Field(description="entries of two blocks share no rank, group or test")
    why: str = Field(description="why it is not of the first block; empty there")
    reference_evidence: Reference
    number: int = Field(description="grows with each entry that comes onto a board")
    submission: str
    method: dict[str, Any]
    submitter: str
    baseline: bool
    is_oracle: bool = Field(description="it knows what no user's query holds, and has no rank")
    verified: bool = Field(description="the organisers have verified it")
    flag: str | None = Field(description="what the organisers warn of, or null")
    received_at: str
    published_at: str | None
    changed_at: str | None = Field(description="when it came onto the board, or its row was changed last")
    sha256: str
    main: Fraction
    interval: tuple[float, float] | None = Field(
        description="95 % bootstrap interval of main, low and high; null where there is none"
    )
    metrics: dict[str, Fraction]
    signature: str


class TableAnswer(BoardAnswer):
    """A board with its rows, best first."""

    protocol: CheckedProtocolAnswer
    entries_held_back: int = Field(description="entries of `entries` that have no row yet")
    shown_from: str | None = Field(description="when the first of them have one, or null")
    groups_pending: bool = Field(description="groups and intervals are not made yet")
    blocks: dict[Block, str] = Field(description="those that have rows, and what stands above each")
    rows: list[RowAnswer]


class PageAnswer(_Strict):
    """Some of a board's entries, in the order in which they came onto it."""

    board: str
    entries: list[RowAnswer]
    next: int | None = Field(description="`after` of the next page, or null where this is the last")


class ChangeAnswer(_Strict):
    """A field of the method, or the submitter, before and after a correction; null where it was not there."""

    old: Any
    new: Any


class EventAnswer(_Strict):
    """One thing that happened to a submission."""

    kind: EventKind
    at: str
    fields: list[str] | None = Field(description="of `corrected`: what changed; else null")
    name: dict[str, str] | None = Field(description="of `corrected`: the name's `old` and `new`, or null")
    changes: dict[str, ChangeAnswer] | None = Field(
        description="of `corrected`, for its owner: each field's `old` and `new`; null for others"
    )


class _SubmissionFields(_Strict):
    id: str
    board: str
    state: State
    finished: bool
    received_at: str
    sha256: str
    size: int
    file_name: str
    submitter: str
    baseline: bool
    method: dict[str, Any] | None
    findings: list[dict[str, Any]]
    file_removed_at: str | None = Field(
        description="when its file, which was refused, was removed; null while it is kept"
    )
    findings_text: str
    message: str | None
    board_offered: str | None = Field(
        description="the board that the file names, where it was sent to another, or null"
    )
    kept_private: Any = Field(description="why it did not go onto the board, or null")
    same_as: str | None = Field(description="an entry of its owner that ranks the same, or null")
    verified: bool
    flag: str | None
    scores: dict[str, Any] | None
    scores_from: str | None = Field(description="when results are shown, while they are not, or null")
    events: list[EventAnswer]
    page: str = Field(description="its board's page, where it is marked")
    outcome_page: str = Field(description="its own page, whatever became of it")
    file: str | None


class SubmissionsAnswer(_Strict):
    """All submissions to a board, for its organisers."""

    submissions: list[_SubmissionFields]


class SubmissionAnswer(_SubmissionFields):
    """A submission: its state, what validation found, and its scores."""

    equals: list[str] = Field(description="entries on the board that rank the same")
    durability: _Durability


class QuotaAnswer(_Strict):
    """What the sender may still send to the board; null where there is no limit."""

    a_day: int | None
    in_all: int | None
    left_today: int | None
    left: int | None
    waiting: int = Field(description="files that wait; each keeps a place until it is judged")
    resets_at: str


class UploadAnswer(_SubmissionFields):
    """A submission as its upload is answered."""

    new: bool = Field(description="false where the same file was there already")
    unchanged: str | None = Field(description="why nothing is new, or null")
    receipt: Receipt
    durability: _Durability
    edit_key: str | None = Field(
        description="of the private link, where the sender has no account; shown once"
    )
    edit_link: str | None = Field(description="the private link: its own page with that key; shown once")
    quota: QuotaAnswer


class NoBody(_Strict):
    """The body of a request that needs no words."""


class ActionBody(_Strict):
    """What comes with an action on a submission.

    Args:
        reason: why, for hide and flag.
        method: for correct: the fields of the method that change; null removes one.
        submitter: for correct: who submits; null removes it.
        seen: how many events the submission had when the sender looked at it; if there are newer ones,
            nothing is done.
    """

    reason: str | None = None
    method: dict[str, Any] | None = None
    submitter: str | None = None
    seen: Annotated[int, Field(strict=True, ge=1)] | None = None


def fields_of(action: str) -> list[str]:
    """The fields of a body that an action on a submission reads; of one that sends a file on none.

    Args:
        action: the last part of its address.
    """
    own = {"correct": list(ActionBody.model_fields), "send-on": [], "bundle": []}
    return own.get(action, ["reason", "seen"])


FAILURES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": FailureAnswer, "description": "the request is wrong"},
    "5XX": {"model": FailureAnswer, "description": "the server cannot answer now"},
    422: {"model": FailureAnswer, "description": "a value is out of range"},
}
"""Every route may answer so."""


def upload_request() -> dict[str, Any]:
    """The bodies that an upload may have, for the OpenAPI document."""
    fields: dict[str, Any] = {
        "board": {
            "type": "string",
            "description": "the board's id, where the query does not name it; default: as the file names",
        },
        "submitter": {"type": "string", "description": "who submits, shown with the entry"},
        "publish": {"type": "string", "description": "yes or no: whether it goes onto the board when scored"},
    }
    for name, schema in declared_fields().items():
        words = schema.get("description", "a field of the method, where the file leaves it out")
        listed = {"anyOf": schema["anyOf"]} if name in LISTED_FIELDS else {"type": "string"}
        fields[name] = {**listed, "description": words}
    form = {
        "type": "object",
        "required": ["file"],
        "properties": {"file": {"type": "string", "format": "binary"}, **fields},
        "additionalProperties": False,
    }
    binary = {"schema": {"type": "string", "format": "binary"}}
    beside = {
        **fields,
        "board": {
            "type": "string",
            "description": "the board's id; default: the board of the benchmark that the file's head names",
        },
        "file_name": {"type": "string", "description": "the file's name, where the body is the file alone"},
    }
    query = [
        {
            "name": name,
            "in": "query",
            "required": False,
            "schema": {"type": "string"},
            "description": schema["description"],
        }
        for name, schema in beside.items()
    ]
    content: dict[str, Any] = {"multipart/form-data": {"schema": form}}
    content |= dict.fromkeys(("application/json", "application/octet-stream", "application/gzip"), binary)
    return {"parameters": query, "requestBody": {"required": True, "content": content}}
