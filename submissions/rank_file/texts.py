"""Texts that strangers write and others read, checked in one way wherever they come in.

The method block of a rank file, the form beside it and the name of its sender go through here: plain texts,
names, links, and the fields that choose from a list of words (`words.yaml`) or say "other" and what. What a
check refuses is a `ValueError` whose words begin with "it" or "the character": whoever calls names the field.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Literal

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

OTHER = "other"
"""The word for what no list has; a text stands behind it."""
_OTHER = f"{OTHER}: "
LISTED_FIELDS = ("oracle", "caption_rule", "backbone")
"""The fields of the method block that are lists of words."""
LONGEST_WORD = 300 + len(_OTHER)
"""Characters at most, "other: " included."""
_DETAILS = re.compile(r" \(|[;,:] ")
"""Where details may begin behind a word."""


def plain_text(text: str, longest: int, breaks: Literal["refuse", "join"] = "refuse") -> str:
    """A text that can stand anywhere: in NFC, trimmed, of characters that are seen and stay in their place.

    Letters, marks, numbers, punctuation, symbols and blanks are accepted. Controls, formatting characters (so
    every one of text direction), halves of characters, private and unassigned ones, other white space and
    characters without a shape are refused. The two joiners of Unicode (U+200C, U+200D) are formatting too,
    but Persian and the languages of India are not written without: they are accepted where RFC 5892, appendix
    A, lets them stand in a host name, for there they are seen. Emoji that U+200D glues together are refused.

    Args:
        text: as it came.
        longest: characters at most, before and after NFC.
        breaks: whether line ends and tabs are refused, or become a blank.

    Raises:
        ValueError: it is too long, or holds a character that is refused.

    Example:
        >>> plain_text("  Zu\\u0308rich ", 80)
        'Zürich'
        >>> plain_text("a \\r\\nb", 80, "join")
        'a b'
    """
    _check_length(text, longest)
    if breaks == "join":
        text = re.sub(r"[ \t\r\n]+", " ", text)
    text = unicodedata.normalize("NFC", text).strip()
    _check_length(text, longest)
    for place, (character, marks) in enumerate(_with_marks(text)):
        if not _is_accepted(text, place):
            raise ValueError(
                f"the character U+{ord(character):04X} is refused (control, formatting, unseen or unassigned)"
            )
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
    kept = "".join(c for c, marks in _with_marks(last) if _is_seen(c) and marks <= _MARKS)
    return unicodedata.normalize("NFC", kept)[-longest:].strip() or default


def words_of(field: str) -> dict[str, str]:
    """The words of a field with their meanings, "other" last.

    Args:
        field: `oracle`, `caption_rule` or `backbone`.

    Example:
        >>> list(words_of("oracle"))
        ['none', 'target_captions', 'target_images', 'ground_truth', 'scene_graphs', 'other']
    """
    listed = {word: str(entry["meaning"]) for word, entry in _listed()[field].items()}
    return {**listed, OTHER: 'Anything else, said behind it: "other: ...".'}


def listed_word(field: str, text: str) -> str:
    """A field's text as it is kept: a word of its list, perhaps with details, or "other: " and a text.

    Args:
        field: `oracle`, `caption_rule` or `backbone`.
        text: as it was written, trimmed.

    Raises:
        ValueError: it is "other" and nothing behind it.

    Example:
        >>> listed_word("backbone", "vit-b/32"), listed_word("backbone", "CLIP ViT-B/32 (laion2b)")
        ('CLIP ViT-B/32', 'CLIP ViT-B/32 (laion2b)')
        >>> listed_word("backbone", "a tower of mine"), listed_word("oracle", "other: clicks on the target")
        ('other: a tower of mine', 'other: clicks on the target')
    """
    if not text:
        return text
    other = re.fullmatch(rf"{OTHER}\s*:\s*(.*)", text, re.IGNORECASE | re.DOTALL)
    if other is not None or _plain(text) == OTHER:
        if other is None or not other[1]:
            raise ValueError('"other" needs a text behind it: "other: ..."')
        return _OTHER + other[1]
    known = _spellings(field)
    if _plain(text) in known:
        return known[_plain(text)]
    for end in _DETAILS.finditer(text):
        start, rest = _plain(text[: end.start()]), text[end.start() :]
        if start in known:
            kept = known[start] + rest if start == _plain(known[start]) else f"{known[start]} ({text})"
            return kept if len(kept) <= LONGEST_WORD else _OTHER + text
    return _OTHER + text


def of_several(texts: list[str]) -> str:
    """What a method of several methods says: the word of all, or "other: " and theirs.

    Example:
        >>> of_several(["single", "single"]), of_several(["single", "other: mine"])
        ('single', 'other: single + mine')
    """
    different = list(dict.fromkeys(text for text in texts if text))
    if len(different) < 2:
        return "".join(different)
    return _OTHER + " + ".join(text.removeprefix(_OTHER) for text in different)


def is_kept_as_other(written: object, kept: str) -> bool:
    """Whether a text that names no word was kept behind "other: ", which it did not say itself."""
    return isinstance(written, str) and kept.startswith(_OTHER) and not _plain(written).startswith("other:")


def is_oracle(method: Mapping[str, Any]) -> bool:
    """Whether a method says that it knows what a user's query does not hold.

    Example:
        >>> is_oracle({"name": "x"}), is_oracle({"oracle": "none"}), is_oracle({"oracle": "target_captions"})
        (False, False, True)
    """
    said = str(method.get("oracle") or "none")
    return _plain(_DETAILS.split(said)[0]) != "none"


def schema_of(field: str) -> dict[str, Any]:
    """A field's JSON schema: one of its words, or a text that begins with one."""
    listed = words_of(field)
    words = [{"type": "string", "enum": list(listed)[:-1]}]
    free = {"type": "string", "maxLength": LONGEST_WORD, "examples": [f"{_OTHER}..."]}
    return {"anyOf": [*words, free]}


def _check_length(text: str, longest: int) -> None:
    if len(text) > longest:
        raise ValueError(f"it has {len(text):,} characters; at most {longest:,} are accepted")


def _with_marks(text: str) -> Iterator[tuple[str, int]]:
    """Each character with the number of combining marks that end in it."""
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        yield character, marks


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


@functools.cache
def _listed() -> dict[str, dict[str, dict[str, Any]]]:
    from cir_datasets.common.yaml import package_yaml

    words = package_yaml("submissions", "rank_file/words.yaml")
    rules, own = package_yaml("cir_datasets", "registry/caption_rules.yaml"), words["caption_rule"]
    told = {name: {"meaning": rule["meaning"], **own.get(name, {})} for name, rule in rules.items()}
    return {**words, "caption_rule": told}


@functools.cache
def _spellings(field: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for word, entry in _listed()[field].items():
        for spelling in (word, *entry.get("also", ())):
            found[_plain(spelling)] = word
    return found


def _plain(text: str) -> str:
    """A spelling without case, blanks, hyphens and underscores."""
    return re.sub(r"[\s_-]+", "", unicodedata.normalize("NFKC", text).casefold()).rstrip(".")


def label_of(name: str) -> str:
    """A file's name without folder and endings: what a method is called where a format does not say.

    Example:
        >>> label_of("runs/sum-clip.test1.json.gz")
        'sum-clip.test1'
    """
    path = PurePath(name)
    return PurePath(path.stem).stem if path.suffix.lower() == ".gz" else path.stem
