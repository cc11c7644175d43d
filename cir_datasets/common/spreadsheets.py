"""Text in CSV files that people open in a spreadsheet: what begins like a formula is not computed."""

from __future__ import annotations

import re

# A text with apostrophes of its own before a formula gets one more: `unguarded` takes one off.
_FORMULA = re.compile(r"'*\s*[=+\-@＝＋－＠]|'*[\t\r\n]")


def guarded(text: str) -> str:
    """The text, with an apostrophe before what a spreadsheet would take for a formula.

    Example:
        >>> guarded("=1+1"), guarded("a star"), guarded("'=1")
        ("'=1+1", 'a star', "''=1")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """The text that `guarded` was given.

    Example:
        >>> unguarded("'=1+1"), unguarded("'t was a star")
        ('=1+1', "'t was a star")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
