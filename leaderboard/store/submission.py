"""A submission as the store knows it: a file for a board, and the events that say what became of it."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast, get_args

State = Literal[
    "received",
    "validated",
    "rejected",
    "scored",
    "failed",
    "published",
    "private",
    "withdrawn",
    "superseded",
    "hidden",
]
"""What a submission is in."""
NoState = Literal["rescored", "corrected", "verified", "unverified", "flagged", "unflagged", "erased"]
"""What can happen to a submission that stays in its state."""
EventKind = Literal[State, "restored", "rerun", NoState]
"""What can happen: a submission comes into a state, or back to one (`restored`, `rerun`), or stays in its."""
By = Literal["server", "owner", "organiser"]
"""Who made it happen; never who that is by name."""

ERASED = "(erased)"
"""What stands in the place of an erased name."""

WAITING: tuple[State, ...] = ("received", "validated", "scored")
"""States in which the server has something left to do."""
NO_STATE: tuple[NoState, ...] = get_args(NoState)

_UNSEEN = ("Cc", "Cf", "Zs", "Zl", "Zp", "Pd", "Pc")
"""Categories of characters that make no difference: unseen ones, blanks, hyphens, underscores."""
_AT_ENDS = ".,:;!\u2026\u00b7'"
_KEY_LENGTH = 400
# Of these none depends on the table: i is the small I, which looks like l.
_SAME = str.maketrans("i1|0", "lllo")


@dataclass(frozen=True)
class Event:
    """One thing that happened to a submission, never changed afterwards.

    Args:
        sequence: 1, 2, ... within the submission.
        kind: what happened.
        at: when, UTC, by the server's clock; nothing is ordered by it.
        payload: what is to be known about it: findings, scores, a message.
        by: who made it happen.
        id: its place in the whole log.
    """

    sequence: int
    kind: EventKind
    at: datetime
    payload: dict[str, Any]
    by: By = "server"
    id: int = 0


def state_after(state: State | None, kind: EventKind, payload: dict[str, Any]) -> State:
    """The state of a submission after one more event.

    Args:
        state: the state before; None before the first event.
        kind: what happens.
        payload: of `restored`, whose `to` is the state that it leads back to.

    Example:
        >>> state_after("published", "corrected", {}), state_after("hidden", "restored", {"to": "published"})
        ('published', 'published')
        >>> state_after("failed", "rerun", {})
        'received'
    """
    if kind in NO_STATE:
        return state or "received"
    if kind == "restored":
        return cast(State, payload["to"])
    if kind == "rerun":
        return "received"
    return cast(State, kind)


def without_person(payload: dict[str, Any]) -> dict[str, Any]:
    """An event's payload of an erased submission: what its sender wrote is left out, the numbers stay.

    Example:
        >>> without_person({"fields": ["name"], "name": {"old": "Ada", "new": "Bob"}})
        {'fields': ['name']}
    """
    kept = {key: value for key, value in payload.items() if key not in ("name", "changes")}
    if "text" in kept:
        kept["text"] = ERASED
    if "findings" in kept:
        kept["findings"] = [_without_words(finding) for finding in kept["findings"]]
    if isinstance(kept.get("reason"), dict):
        kept["reason"] = _without_words(kept["reason"])
    if "report" in kept:
        report = dict(kept["report"])
        warnings = [_without_words(finding) for finding in report.get("warnings", [])]
        kept["report"] = {**report, "file": ERASED, "method": ERASED, "warnings": warnings}
    return kept


def _without_words(said: dict[str, Any]) -> dict[str, Any]:
    return {**said, "message": ERASED, "fix": ERASED, **({"examples": []} if "examples" in said else {})}


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A file sent to a board.

    Args:
        id: the submission's id, in addresses too.
        number: place in the order of arrival; larger is later.
        board: the board's id.
        sha256: of the file as it was sent.
        canonical: the hash of what it ranks, however it is written; None before validation.
        attempt: 1, or more where the same file was rejected or failed before.
        size: bytes.
        file_name: the sender's name for the file.
        received_at: when the file was durable here, UTC.
        scored_at: when it was scored, UTC; None before.
        owner: whose it is: an account, a token's owner, or empty.
        edit_hash: hash of the private link of a submission without an account, or None.
        submitter: who sent it, as they wrote it; may be empty.
        form: the method's fields as sent beside the file.
        method: the method's fields as shown: the file's own, completed by the form; None before validation.
        baseline: whether the organisers put it up as a floor or baseline.
        publish: whether it goes onto the board when it is scored.
        events: its log, first to last.
        file_removed_at: when its refused file was removed, UTC; None while the file is kept.
    """

    id: str
    number: int = 0
    board: str
    sha256: str
    canonical: str | None = None
    attempt: int
    size: int
    file_name: str
    received_at: datetime
    scored_at: datetime | None = None
    owner: str = ""
    edit_hash: str | None = None
    submitter: str
    form: dict[str, Any]
    method: dict[str, Any] | None
    baseline: bool
    publish: bool = True
    events: tuple[Event, ...]
    file_removed_at: datetime | None = None

    @property
    def state(self) -> State:
        """The state, derived from the log."""
        state: State | None = None
        for event in self.events:
            state = state_after(state, event.kind, event.payload)
        return state or "received"

    @property
    def finished(self) -> bool:
        """Whether the server has nothing left to do."""
        return self.state not in WAITING

    def last(self, *kinds: EventKind) -> Event | None:
        """The last event of one of these kinds, or None."""
        return next((event for event in reversed(self.events) if event.kind in kinds), None)

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What validation found: the errors of a rejected file, the warnings of an accepted one."""
        judged = self.last("validated", "rejected")
        return [] if judged is None else list(judged.payload.get("findings", []))

    @property
    def scores(self) -> dict[str, Any] | None:
        """The score report that counts now, or None where there is none (yet)."""
        scored = self.last("scored", "rescored")
        if scored is None:
            return None
        report = dict(scored.payload["report"])
        # The log has the name that the file gave; shown is the one that it has now.
        if "method" in report and self.method:
            report["method"] = self.method.get("name", report["method"])
        return report

    @property
    def form_now(self) -> dict[str, Any]:
        """The form as it was sent, but for what its owner has declared of the reference since.

        Of that the file itself has the last word.
        """
        validated = self.last("validated")
        claims = (validated.payload.get("claims") if validated else None) or {}
        if self.last("corrected") is None or "reference" in claims:
            return self.form
        now = {**self.form, "reference": (self.method or {}).get("reference")}
        return {name: value for name, value in now.items() if value is not None}

    @property
    def verified(self) -> bool:
        """Whether the organisers have verified it as it stands; a correction of its words takes that back."""
        said = self.last("verified", "unverified")
        return said is not None and said.kind == "verified"

    @property
    def kept_off(self) -> bool:
        """Whether organisers have hidden it and not restored it, withdrawn since or not."""
        said = self.last("hidden", "restored")
        return said is not None and said.kind == "hidden"

    @property
    def why_hidden(self) -> str:
        """The reason that organisers gave when they hid it last, or nothing."""
        hidden = self.last("hidden")
        return "" if hidden is None else str(hidden.payload.get("reason", ""))

    @property
    def flag(self) -> str | None:
        """What the organisers warn of, or None."""
        said = self.last("flagged", "unflagged")
        return said.payload.get("reason") if said is not None and said.kind == "flagged" else None


def name_key(name: str) -> str:
    """A name as names are compared: what looks alike is one.

    Letters are replaced by what they look like (the skeleton of Unicode Technical Standard 39), small letters
    stand for large ones, and blanks, hyphens, underscores and marks at an end make no difference.

    Example:
        >>> name_key(" CLIP  Sum. ") == name_key("clip-sum") == name_key("C1IP_Sum"), name_key("\uff23LIP+")
        (True, 'cllp+')
    """
    folded = _without_case(name)
    looks = "".join(_look(letter) for letter in unicodedata.normalize("NFD", folded))
    return _without_case(looks).translate(_SAME).strip(_AT_ENDS)[:_KEY_LENGTH]


def _without_case(text: str) -> str:
    """Of compatible small letters, without what is not seen."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return "".join(letter for letter in text if unicodedata.category(letter) not in _UNSEEN)


def _look(letter: str) -> str:
    """What stands for all letters that look like this one.

    The library has pairs of a letter and its like, both ways. The one that stands for a class has them
    all; of a class of two it is the longer one.
    """
    table = _alike()
    near = [one["c"].strip("\u200e") for one in table.get(letter) or table.get(f"\u200e{letter}\u200e") or ()]
    return max((letter, *near), key=lambda one: (len(table.get(one, ())), len(one), one))


@functools.cache
def _alike() -> Mapping[str, list[dict[str, str]]]:
    from confusable_homoglyphs.confusables import confusables_data

    found: Mapping[str, list[dict[str, str]]] = confusables_data
    return found
