"""Findings as pages show them: a group a code, with places where it was found, what is wrong and the fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cir_datasets.common.terminal import visible
from leaderboard.errors import UploadRefusedError

PLACES = 5
"""A group shows at most so many places, and so many messages."""
_SHOWN = 60


@dataclass(frozen=True)
class FindingGroup:
    """All findings of one code.

    Args:
        code: of `findings.yaml`, or of a refusal.
        severity: `error` or `warning`.
        count: how many places have it.
        places: up to five of them, as text; a single one says what its sentence does not.
        messages: what is wrong, up to five sentences.
        fixes: what to do, each once.
    """

    code: str
    severity: str
    count: int
    places: tuple[str, ...]
    messages: tuple[str, ...]
    fixes: tuple[str, ...]


def grouped(findings: Iterable[Mapping[str, Any]]) -> list[FindingGroup]:
    """Findings by code, errors first, else in the order in which validation lists them.

    Args:
        findings: as JSON values.

    Example:
        >>> place = {"query_id": "q1", "turn": 2}
        >>> one = {"code": "duplicate-image", "severity": "error", "message": "m", "fix": "f", "count": 3}
        >>> (group,) = grouped([{**one, "examples": [place]}, one])
        >>> group.count, group.places, group.messages
        (6, ('q1, turn 2',), ('m',))
    """
    by_code: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for finding in findings:
        by_code.setdefault((str(finding["severity"]), str(finding["code"])), []).append(finding)
    groups = [
        FindingGroup(
            code,
            severity,
            sum(int(one.get("count") or 1) for one in same),
            _places(same),
            _first(str(one["message"]) for one in same),
            _first(str(one["fix"]) for one in same),
        )
        for (severity, code), same in by_code.items()
    ]
    return sorted(groups, key=lambda group: group.severity != "error")


_COMMANDS = re.compile(
    r"`(?P<quoted>[^`]+)`"
    r"|  (?P<apart>\S.*?)(?=  |$)"
    r"|(?P<bare>\bcir [a-z]+(?: [a-z]+(?= --))?(?: --[a-z-]+)*|\bsubmissions\.\w+\([^)]*\))"
)
"""How sentences set off what is typed: between backticks, between double blanks, or as it is."""


def with_commands(words: str) -> list[tuple[str, bool]]:
    """The parts of a sentence, and whether each is a command.

    Args:
        words: a message or a fix, as terminals show it.

    Example:
        >>> with_commands("keep one, then run  cir validate run.json")
        [('keep one, then run ', False), ('cir validate run.json', True)]
        >>> with_commands("`cir score FILE` shows it")
        [('cir score FILE', True), (' shows it', False)]
    """
    found: list[tuple[str, bool]] = []
    place = 0
    for each in _COMMANDS.finditer(words):
        blank = " " if each["apart"] else ""
        found += [(words[place : each.start()] + blank, False), (each[each.lastgroup or 0], True)]
        place = each.end()
    return [part for part in [*found, (words[place:], False)] if part[0]]


_NOTHING = re.compile(r"no [a-z ]+['\"]")
"""What begins a message on something that is named and is not there."""
_ORDINARY = re.compile(r"[a-z]+(?=[ ,])")
"""What begins a message in small letters, and is a word, not an id."""


def sentence(message: str) -> str:
    """A message, which begins in small letters, as a sentence.

    Args:
        message: of an error or a finding.

    Example:
        >>> sentence("no submission 'a' here."), sentence("no file is chosen.")
        ("There is no submission 'a' here.", 'No file is chosen.')
        >>> sentence("shapes/val has no such query.")
        'shapes/val has no such query.'
    """
    if _NOTHING.match(message):
        return f"There is {message}"
    return message[:1].upper() + message[1:] if _ORDINARY.match(message) else message


def refusal(error: UploadRefusedError) -> list[FindingGroup]:
    """A refusal before a file became a submission, as a finding.

    Args:
        error: what was raised.
    """
    return [FindingGroup(error.code, "error", 1, (), (error.message,), (error.fix,))]


def _first(texts: Iterable[str]) -> tuple[str, ...]:
    """The first texts that are not empty, each once."""
    return tuple(dict.fromkeys(text for text in texts if text))[:PLACES]


def _places(same: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The first places of a group. The sentence on a single one names its position and value already."""
    found = [(one, example) for one in same for example in one.get("examples") or ()]
    if len(found) == 1 and int(found[0][0].get("count") or 1) == 1:
        ((one, example),) = found
        if str(example.get("value", "")) in str(one["message"]):
            found = [(one, {**example, "position": None, "value": None})]
    return _first(_place(one, example) for one, example in found)


def _place(finding: Mapping[str, Any], example: Mapping[str, Any]) -> str:
    """Where an example is (its member of a bundle, its query, its turn, its position), and what stands there.

    Example:
        >>> _place({}, {"query_id": "q1", "turn": 2, "position": 4, "value": "a.jpg"})
        'q1, turn 2, position 4: a.jpg'
    """
    query, value = example.get("query_id"), example.get("value")
    if query is None:
        return ""
    member = finding.get("benchmark")
    numbers = [f"{name} {example[name]}" for name in ("turn", "position") if example.get(name) is not None]
    where = ", ".join([(f"{member}: " if member else "") + _cut(query), *numbers])
    return where if value is None or value == query else f"{where}: {_cut(value)}"


def _cut(value: object) -> str:
    """A value as text, not longer than a line; what would turn its letters round is written out."""
    text = visible(str(value))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
