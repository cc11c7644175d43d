"""What the owner of a submission may do on its page: the form of its words, and the actions."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cir_datasets.common.yaml import package_yaml
from leaderboard.intake.life import RULES, Action
from leaderboard.store.submission import Submission
from submissions.rank_file.texts import LISTED_FIELDS, OTHER
from submissions.rank_file.texts import words_of as listed_words

ACTIONS: dict[Action, str] = {
    "publish": "Publish",
    "correct": "Save",
    "unpublish": "Take it off the board",
    "withdraw": "Withdraw for good",
}
"""The actions that the page offers; programs have more. `submission.js` knows them by name."""


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


@functools.cache
def fields() -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """The fields that everybody fills in, and those that are folded away: `owner_form.yaml`."""
    parts = package_yaml("leaderboard", "pages/owner_form.yaml")
    first, folded = (tuple(map(_field, part)) for part in parts)
    return first, folded


def _field(written: Mapping[str, Any]) -> Field:
    """A field; where it says no words to choose from, those that the file format lists."""
    name, listed = written["name"], written.get("listed", {})
    if not listed and name in LISTED_FIELDS:
        listed = {word: meaning for word, meaning in listed_words(name).items() if word != OTHER}
    return Field(**{**written, "listed": tuple(listed.items())})


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
