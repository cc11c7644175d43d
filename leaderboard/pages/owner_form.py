"""What the owner of a submission may do on its page: the form of its words, and the actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leaderboard.intake.life import RULES, Action
from leaderboard.store.submission import Submission
from submissions.rank_file.texts import OTHER
from submissions.rank_file.texts import words_of as listed_words

ACTIONS: dict[Action, str] = {
    "publish": "Publish",
    "correct": "Save",
    "unpublish": "Take it off the board",
    "withdraw": "Withdraw for good",
}
"""The actions that the page offers; programs have more. `submission.js` knows them by name."""

_NOT_SAID = (("", "not said"),)


@dataclass(frozen=True)
class Field:
    """A field of the form.

    Args:
        name: the field of the method, or `submitter`.
        label: what people read.
        hint: a line below it, or empty.
        kind: what is sent for it: `text`, `list` (split at commas), `choice` (a listed word) or `bool` (yes,
            no or nothing).
        longest: characters at most.
        listed: words to choose from; another text may be written where the kind is `text`.
        lines: rows of the input.
    """

    name: str
    label: str
    hint: str = ""
    kind: str = "text"
    longest: int = 300
    listed: tuple[tuple[str, str], ...] = ()
    lines: int = 1


def fields() -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """The fields that everybody fills in, and those that are folded away."""
    return (
        Field("name", "Method name", longest=80),
        Field("submitter", "Submitted by", "Shown with the entry; may stay empty.", longest=80),
        Field("backbone", "Backbone", "Choose from the list, or write your own.", listed=_listed("backbone")),
        Field("paper", "Paper", "An address that begins with https://."),
        Field("code", "Code", "An address that begins with https://."),
        Field("zero_shot", "Zero-shot", kind="bool", listed=(*_NOT_SAID, ("yes", "yes"), ("no", "no"))),
        Field(
            "reference",
            "Reference image",
            "Whether the lists were ranked with it; what they show against it is refused.",
            kind="choice",
            listed=(*_NOT_SAID, ("kept", "kept in the ranking"), ("removed", "removed from it")),
        ),
    ), (
        Field(
            "oracle",
            "Oracle",
            "What it knows that no user's query holds. An oracle has no rank.",
            listed=_listed("oracle"),
        ),
        Field(
            "caption_rule",
            "Caption rule",
            "How several captions become one text.",
            listed=_listed("caption_rule"),
        ),
        Field("text_fields", "Text fields", "Columns that are read, separated by commas.", "list", 2000),
        Field("aggregation", "Aggregation", "How the turns of a session become one ranking."),
        Field("trained_on", "Trained on", "Data sets, separated by commas.", "list", 2000),
        Field("notes", "Notes", "What a reader needs to know.", longest=2000, lines=3),
    )


def _listed(field: str) -> tuple[tuple[str, str], ...]:
    return tuple((word, meaning) for word, meaning in listed_words(field).items() if word != OTHER)


def words_of(submission: Submission) -> dict[str, str]:
    """A submission's words, as the form's fields hold them.

    Args:
        submission: after validation, or before: then all are empty.
    """
    method: Mapping[str, Any] = submission.method or {}
    words = {field.name: _written(method.get(field.name)) for part in fields() for field in part}
    return {**words, "submitter": submission.submitter}


def _written(value: Any) -> str:
    """A field's value as a text in a form."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value or "")


def offered(submission: Submission) -> list[tuple[Action, str]]:
    """The actions that its state allows its owner, with the words on their buttons."""
    return [(action, words) for action, words in ACTIONS.items() if submission.state in RULES[action].states]


def link_promise(submission: Submission) -> str:
    """What whoever has the private link of a submission can do with it.

    Args:
        submission: in any state.
    """
    if not submission.finished:
        return "Whoever has it can correct, publish and withdraw the submission once it is scored."
    actions = [name for name, rule in RULES.items() if rule.by == "owner" and submission.state in rule.states]
    if actions:
        joined = f"{', '.join(actions[:-1])}{' and ' if actions[1:] else ''}{actions[-1]}"
        return f"Whoever has it can {joined} the submission."
    if submission.state == "rejected":
        return (
            "A refused file cannot be corrected or published here. Send a corrected file: it becomes a new "
            "submission with a new link."
        )
    return "Nothing of it can be changed any more."
