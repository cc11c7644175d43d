"""Fields of the method block that choose from a list of words (`words.yaml`), or say "other" and what.

Files of earlier versions hold free texts there: a known spelling becomes its word, and any other text is kept
behind "other: ".
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

OTHER = "other"
"""The word for what no list has; a text stands behind it."""
_OTHER = f"{OTHER}: "
FIELDS = ("oracle", "caption_rule", "backbone")
"""The fields that are lists of words."""
LONGEST = 300 + len(_OTHER)
"""Characters at most, "other: " included."""


@functools.cache
def _listed() -> dict[str, dict[str, dict[str, Any]]]:
    from cir_datasets.common.yaml import own_yaml

    found: dict[str, dict[str, dict[str, Any]]] = own_yaml("submissions", "rank_file/words.yaml")
    rules, own = own_yaml("cir_datasets", "registry/caption_rules.yaml"), found["caption_rule"]
    found["caption_rule"] = {
        name: {"meaning": rule["meaning"], **own.get(name, {})} for name, rule in rules.items()
    }
    return found


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


def word(field: str, text: str) -> str:
    """A field's text as it is kept: a word of its list, perhaps with details, or "other: " and a text.

    Args:
        field: `oracle`, `caption_rule` or `backbone`.
        text: as it was written, trimmed.

    Raises:
        ValueError: it is "other" and nothing behind it.

    Example:
        >>> word("backbone", "vit-b/32"), word("backbone", "CLIP ViT-B/32 (laion2b)")
        ('CLIP ViT-B/32', 'CLIP ViT-B/32 (laion2b)')
        >>> word("backbone", "a tower of mine"), word("oracle", "other: clicks on the target")
        ('other: a tower of mine', 'other: clicks on the target')
    """
    if not text:
        return text
    said = re.fullmatch(rf"{OTHER}\s*:\s*(.*)", text, re.IGNORECASE | re.DOTALL)
    if said is not None or _plain(text) == OTHER:
        if said is None or not said[1]:
            raise ValueError('"other" needs a text behind it: "other: ..."')
        return _OTHER + said[1]
    known = _spellings(field)
    if _plain(text) in known:
        return known[_plain(text)]
    for end in re.finditer(r" \(|[;,:] ", text):
        start, rest = _plain(text[: end.start()]), text[end.start() :]
        if start in known:
            kept = known[start] + rest if start == _plain(known[start]) else f"{known[start]} ({text})"
            return kept if len(kept) <= LONGEST else _OTHER + text
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
    return _plain(re.split(r" \(|[;,:] ", said)[0]) != "none"


def schema_of(field: str) -> dict[str, Any]:
    """A field's JSON schema: one of its words, or a text that begins with one."""
    listed = words_of(field)
    words = [{"type": "string", "enum": list(listed)[:-1]}]
    free = {"type": "string", "maxLength": LONGEST, "examples": [f"{_OTHER}..."]}
    return {"anyOf": [*words, free]}
