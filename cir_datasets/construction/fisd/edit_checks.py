"""Whether the edit of an English caption is one of its aspect: what stays, what changes, what is asked for.

The rules are data (`edit_checks.yaml`). Words and lemmas are HanTa's.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from cir_datasets.common.yaml import package_yaml

_CONTENT = ("noun", "verb", "adjective", "adverb", "number")
_SHARED = 4
"""Fewest letters at the start that two words of one stem share: snow and snowy."""
_ENDING = 2
"""Most letters of the shorter one that are its ending: stripes and striped."""


class EditFault(NamedTuple):
    """Why an edit is refused.

    Args:
        code: the rule's name.
        why: in words, which a model is told.
    """

    code: str
    why: str

    def __str__(self) -> str:
        """Both."""
        return f"{self.code}: {self.why}"


class _Word(NamedTuple):
    place: int
    text: str
    lemma: str
    kind: str

    def same(self, other: _Word) -> bool:
        return not {self.text, self.lemma}.isdisjoint((other.text, other.lemma))


class _ComparedEdit:
    """Both captions compared, and what the request names.

    Args:
        caption: of the reference.
        request: the relative caption.
        target: the caption of the target.
        singulars: by word in plural that in singular, where lemmas may not be known.
    """

    def __init__(self, caption: str, request: str, target: str, singulars: Mapping[str, str]) -> None:
        whole = _words(caption, singulars)
        aim = _words(target, singulars)
        before, after = (_content(words) for words in (whole, aim))
        first = next((word.place for word in before if word.kind == "noun"), len(whole))
        # A caption may begin with its place: "In a park a dog runs".
        behind = (word.place for word in whole[first:] if word.text in _table()["places"])
        ends = next(behind, len(whole))
        self.before: list[_Word] = before
        self.foreground: list[_Word] = [word for word in before if word.place < ends]
        # Of two dogs that are named one may be gone, and neither is lost.
        self.lost: list[_Word] = [word for word in before if not any(map(word.same, aim))]
        self.gone: list[_Word] = _left_over(before, aim)
        self.new: list[_Word] = _left_over(after, whole)
        self.numbers: list[list[str]] = [
            sorted(word.text for word in words if _is_number(word.text)) for words in (whole, aim)
        ]
        self.asked: set[str] = {form for word in _words(request, singulars) for form in word[1:3]}

    def names(self, words: Iterable[_Word]) -> bool:
        """Whether the request has one of some words, or one of its stem."""
        return any(_one_stem(form, asked) for word in words for form in word[1:3] for asked in self.asked)

    def about_setting(self) -> bool:
        """Whether the request is about the setting."""
        return not self.asked.isdisjoint(_table()["settings"])


def edit_fault(
    aspect: str, caption: str, request: str, target: str, singulars: Mapping[str, str] | None = None
) -> EditFault | None:
    """The first rule of an aspect that an edit breaks, or None.

    Args:
        aspect: one of FISD's.
        caption: of the reference.
        request: the relative caption.
        target: the caption of the target.
        singulars: by word in plural that in singular; beside the lemmas.

    Raises:
        MissingExtraError: HanTa is not installed.

    Example:
        >>> before = "A woman at a window"
        >>> edit_fault("addition", before, "Add a cat.", "A woman and a cat at a window")
        >>> str(edit_fault("addition", before, "a red circle", "a red circle and a blue cross"))
        'word_lost: the description lacks words that must stay: woman, window'
    """
    edit = _ComparedEdit(caption, request, target, singulars or {})
    for code, limit in _table()["aspects"][aspect].items():
        words = _RULES[code](edit, limit)
        if words is not None:
            shown = ", ".join(dict.fromkeys(word.text for word in words))
            return EditFault(code, _table()["reasons"][code].format(words=shown))
    return None


def rules_hash() -> str:
    """What tells these rules from others, for the settings of a run."""
    return hashlib.sha256(orjson.dumps(dict(_table()))).hexdigest()[:12]


@functools.cache
def _table() -> Mapping[str, Any]:
    table: dict[str, Any] = package_yaml("cir_datasets", "construction/fisd/edit_checks.yaml")
    english = package_yaml("cir_datasets", "construction/fisd/english.yaml")
    return table | {name: english[name] for name in ("places", "numbers")}


def _words(text: str, singulars: Mapping[str, str]) -> list[_Word]:
    from cir_datasets.statistics.counts import tagged

    return [
        _Word(place, word, singulars.get(word, lemma), kind)
        for place, (word, lemma, kind) in enumerate(tagged(text))
    ]


def _content(words: Iterable[_Word]) -> list[_Word]:
    return [word for word in words if word.kind in _CONTENT and word.lemma not in _table()["empty"]]


def _left_over(words: Iterable[_Word], others: Iterable[_Word]) -> list[_Word]:
    """The words of which there are more than among others."""
    rest, left = list(others), []
    for word in words:
        match = next(filter(word.same, rest), None)
        if match is None:
            left.append(word)
        else:
            rest.remove(match)
    return left


def _is_number(text: str) -> bool:
    return text.isdigit() or text in _table()["numbers"]


def _things(words: Sequence[_Word]) -> list[list[_Word]]:
    """The nouns but for light ones; those beside each other are one thing (`tennis racket`)."""
    things: list[list[_Word]] = []
    for word in _heavy(words, ("noun",)):
        if things and things[-1][-1].place == word.place - 1:
            things[-1].append(word)
        else:
            things.append([word])
    return things


def _one_stem(one: str, other: str) -> bool:
    differ = (place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    shared = next(differ, min(len(one), len(other)))
    return one == other or (shared >= _SHARED and shared >= min(len(one), len(other)) - _ENDING)


def _of(words: Iterable[_Word], kinds: Sequence[str]) -> list[_Word]:
    return [word for word in words if word.kind in kinds]


def _heavy(words: Iterable[_Word], kinds: Sequence[str]) -> list[_Word]:
    """Those of some classes that may not come and go."""
    return [word for word in _of(words, kinds) if word.lemma not in _table()["light"]]


def _not_requested(edit: _ComparedEdit, what: str) -> list[_Word] | None:
    if what == "each_gone":
        things = _things(edit.gone) or [[word] for word in edit.gone]
        return [thing[-1] for thing in things if not edit.names(thing)] or None
    words = edit.new or edit.gone
    # Where nothing is new, the background is gone.
    return None if edit.names(words) or (not edit.new and edit.about_setting()) else words


def _too_much_lost(edit: _ComparedEdit, share: float) -> list[_Word] | None:
    lost = [thing[-1] for thing in _things(edit.before) if any(word in edit.lost for word in thing)]
    names = {thing[-1].lemma for thing in _things(edit.before)}
    return lost if len({word.lemma for word in lost}) > max(1, int(share * len(names))) else None


def _too_much_added(edit: _ComparedEdit, most: int) -> list[_Word] | None:
    things = _things(edit.new)
    return [thing[-1] for thing in things] if len(things) > most else None


_RULES: Mapping[str, Callable[[_ComparedEdit, Any], list[_Word] | None]] = {
    "word_lost": lambda edit, kinds: _heavy(edit.lost, kinds) or None,
    "nothing_added": lambda edit, kinds: None if _of(edit.new, kinds) else [],
    "nothing_removed": lambda edit, kinds: None if _of(edit.gone, kinds) else [],
    "something_added": lambda edit, kinds: _heavy(edit.new, kinds) or None,
    "same_number": lambda edit, _: [] if edit.numbers[0] == edit.numbers[1] else None,
    "other_number": lambda edit, _: None if edit.numbers[0] == edit.numbers[1] else [],
    "opposite": lambda edit, verbs: None if edit.asked.isdisjoint(verbs) else [],
    "not_requested": _not_requested,
    "too_much_lost": _too_much_lost,
    "too_much_added": _too_much_added,
    "foreground_lost": lambda edit, kinds: (
        _heavy([word for word in edit.foreground if word in edit.lost], kinds) or None
    ),
    "setting_kept": lambda edit, kinds: None if _of(edit.gone, kinds) or edit.about_setting() else [],
    "nothing_changed": lambda edit, least: [] if len(edit.gone) + len(edit.new) < least else None,
    "nothing_remains": lambda edit, least: [] if len(edit.before) - len(edit.lost) < least else None,
}
"""By name what finds the words at fault, an empty list where none is to be named, or None."""
