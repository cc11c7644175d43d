"""Free text and links that strangers write and others read, checked in one way wherever they come in.

The method block of a rank file, the form beside it and the name of its sender go through here. What a check
refuses is a `ValueError` whose words begin with "it" or "the character": whoever calls names the field.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Literal

_NAME_EXTRA = frozenset(" -_.,:;+*/()[]&@#'!?=~^%·")

_MARKS = 2
"""Combining marks on one character at most: writing needs no more, and a tower of them covers other rows."""

_UNSEEN = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0))))
)
"""Letters, marks and symbols without a shape: two names that differ by one look the same."""

_STYLES = "\ufe0e\ufe0f"
"""They choose how a symbol is drawn, and have a place behind a symbol only."""

_JOINER, _NON_JOINER = "\u200d", "\u200c"
_VIRAMA = 9
"""Combining class of the sign that binds two letters in the scripts of India."""

_HOST_LENGTH = 253
_PORTS = range(1, 2**16)
_LINK = re.compile(
    r"https://(?P<host>[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*)"
    r"(?::(?P<port>[0-9]{1,5}))?(?:[/?#][!-~]*)?",
    re.IGNORECASE | re.ASCII,
)
_LINK_REFUSED = frozenset("<>\"'`{}|\\^")


def plain_text(text: str, longest: int, breaks: Literal["refuse", "join", "keep"] = "refuse") -> str:
    """A text that can stand anywhere: in NFC, trimmed, of characters that are seen and stay in their place.

    Letters, marks, numbers, punctuation, symbols and blanks are accepted. Controls, formatting characters (so
    every one of text direction), halves of characters, private and unassigned ones, other white space and
    characters without a shape are refused. The two joiners of Unicode (U+200C, U+200D) are formatting too,
    but Persian and the languages of India are not written without: they are accepted where RFC 5892, appendix
    A, lets them stand in a host name, for there they are seen. Emoji that U+200D glues together are refused.

    Args:
        text: as it came.
        longest: characters at most, before and after NFC.
        breaks: what becomes of line ends and tabs: they are refused, or become a blank, or (`keep`) lines end
            in one line feed each, without blanks before it.

    Raises:
        ValueError: it is too long, or holds a character that is refused.

    Example:
        >>> plain_text("  Zu\\u0308rich ", 80)
        'Zürich'
        >>> plain_text("a \\r\\nb", 80, "join"), plain_text("a \\r\\nb", 80, "keep")
        ('a b', 'a\\nb')
    """
    _check_length(text, longest)
    if breaks == "join":
        text = re.sub(r"[ \t\r\n]+", " ", text)
    elif breaks == "keep":
        text = re.sub(r"[ \t]*(?:\r\n|\r|\n)", "\n", text).replace("\t", " ")
    text = unicodedata.normalize("NFC", text).strip(" \n" if breaks == "keep" else None)
    _check_length(text, longest)
    marks = 0
    for place, character in enumerate(text):
        if not _is_accepted(text, place) and not (breaks == "keep" and character == "\n"):
            raise ValueError(
                f"the character U+{ord(character):04X} is refused (control, formatting, unseen or unassigned)"
            )
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        if marks > _MARKS:
            raise ValueError(f"it stacks more than {_MARKS} combining marks on one character")
    return text


def name(text: str, longest: int) -> str:
    """The name of something, on one line: letters and numbers of any script, and a little punctuation.

    Raises:
        ValueError: it is empty, too long, or holds a character that is refused.

    Example:
        >>> name(" Image + text, sum ", 80)
        'Image + text, sum'
    """
    text = plain_text(text, longest)
    for character in text:
        # Of category C only joiners are left.
        if unicodedata.category(character)[0] not in "LMNC" and character not in _NAME_EXTRA:
            allowed = "".join(sorted(_NAME_EXTRA - {" "}))
            raise ValueError(
                f"the character {character!r} is refused; letters, numbers and {allowed} and blanks are "
                "accepted"
            )
    if not text:
        raise ValueError("it is empty")
    if not any(unicodedata.category(character)[0] in "LN" for character in text):
        raise ValueError("it needs a letter or a number")
    return text


def link(text: str, longest: int) -> str:
    """An address as `is_link` takes it, trimmed; or nothing.

    Raises:
        ValueError: it is too long, or something else than that.

    Example:
        >>> link(" https://arxiv.org/abs/2108.04024", 300)
        'https://arxiv.org/abs/2108.04024'
    """
    text = text.strip()
    _check_length(text, longest)
    if text and not is_link(text):
        raise ValueError("a link starts with https:// and a host, and holds no blanks, quotes or user names")
    return text


def is_link(text: str) -> bool:
    """Whether a page may link to this address: https, a host, perhaps a port, a path and what follows.

    There is no room in it for a user and a password, for blanks, for quotes, or for a host that looks like
    another one: hosts in other scripts are written as browsers send them (`xn--...`).

    Example:
        >>> is_link("https://arxiv.org/abs/2108.04024"), is_link("https://me:secret@arxiv.org")
        (True, False)
    """
    found = _LINK.fullmatch(text)
    if found is None or _LINK_REFUSED & set(text):
        return False
    return len(found["host"]) <= _HOST_LENGTH and int(found["port"] or 443) in _PORTS


def file_name(text: str, longest: int, default: str) -> str:
    """A sender's name for a file, as one plain line to be shown: never refused, never used as a path.

    Args:
        text: as it came, perhaps with folders before it.
        longest: characters at most; the end of a longer one is kept.
        default: stands where nothing is left.

    Example:
        >>> file_name("C:\\\\runs\\\\run\\u202e.json", 80, "upload.json")
        'run.json'
    """
    last = unicodedata.normalize("NFC", text.replace("\\", "/").rsplit("/", maxsplit=1)[-1])
    kept, marks = "", 0
    for character in last:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        if _is_seen(character) and marks <= _MARKS:
            kept += character
    return unicodedata.normalize("NFC", kept)[-longest:].strip() or default


def _check_length(text: str, longest: int) -> None:
    if len(text) > longest:
        raise ValueError(f"it has {len(text):,} characters; at most {longest:,} are accepted")


def _is_seen(character: str) -> bool:
    seen = unicodedata.category(character)[0] in "LMNPS" and character not in _UNSEEN
    return character == " " or (seen and character not in _STYLES)


def _is_accepted(text: str, place: int) -> bool:
    character = text[place]
    if character in (_JOINER, _NON_JOINER):
        return _joins(text, place)
    if character in _STYLES:
        return place > 0 and unicodedata.category(text[place - 1]) == "So"
    return _is_seen(character)


def _joins(text: str, place: int) -> bool:
    """Whether a joiner is seen: behind a virama, or (U+200C) between Arabic letters that would join."""
    before, after = text[place - 1] if place else "", text[place + 1 : place + 2]
    if not before or not after:
        return False
    if unicodedata.combining(before) == _VIRAMA:
        return unicodedata.category(after)[0] == "L"
    return text[place] == _NON_JOINER and before in _with_form("initial") and after in _with_form("final")


@functools.cache
def _with_form(form: str) -> frozenset[str]:
    """The Arabic letters that have an initial form (they join what follows), or a final one."""
    forms = [unicodedata.decomposition(chr(code)).split() for code in range(0xFB50, 0xFF00)]
    return frozenset(chr(int(parts[1], 16)) for parts in forms if len(parts) == 2 and parts[0] == f"<{form}>")
