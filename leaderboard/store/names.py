"""Names that look alike are one name, in a file of its own: the store, tokens and migrations compare by it.

Letters are replaced by what they look like (the skeleton of Unicode Technical Standard 39), small letters
stand for large ones, and blanks, hyphens, underscores and marks at an end make no difference.
"""

from __future__ import annotations

import functools
import logging
import unicodedata
from collections.abc import Mapping

log = logging.getLogger("leaderboard.store")

_UNSEEN = ("Cc", "Cf", "Zs", "Zl", "Zp", "Pd", "Pc")
"""Categories of characters that make no difference: unseen ones, blanks, hyphens, underscores."""
_ENDS = ".,:;!\u2026\u00b7'"
_LENGTH = 400
_FIX = "Fix: pip install confusable-homoglyphs"
# Of these none depends on the table: i is the small I, which looks like l.
_SAME = str.maketrans("i1|0", "lllo")


def name_key(name: str) -> str:
    """A name as names are compared.

    Example:
        >>> name_key(" CLIP  Sum. ") == name_key("clip-sum") == name_key("C1IP_Sum"), name_key("\uff23LIP+")
        (True, 'cllp+')
    """
    folded = _plain(name)
    looks = "".join(_look(letter) for letter in unicodedata.normalize("NFD", folded))
    return _plain(looks).translate(_SAME).strip(_ENDS)[:_LENGTH]


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold()
    return "".join(letter for letter in text if unicodedata.category(letter) not in _UNSEEN)


def _look(letter: str) -> str:
    """What stands for all letters that look like this one.

    The library has pairs of a letter and its like, both ways. The one that stands for a class has them
    all; of a class of two it is the longer one.
    """
    table = _table()
    near = [one["c"].strip("\u200e") for one in table.get(letter) or table.get(f"\u200e{letter}\u200e") or ()]
    return max((letter, *near), key=lambda one: (len(table.get(one, ())), len(one), one))


@functools.cache
def _table() -> Mapping[str, list[dict[str, str]]]:
    try:
        from confusable_homoglyphs.confusables import confusables_data
    except ImportError:
        log.error("confusable-homoglyphs is missing: letters of other scripts are told apart. %s", _FIX)
        return {}
    found: Mapping[str, list[dict[str, str]]] = confusables_data
    return found
