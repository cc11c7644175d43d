"""What benchmarks, challenges and overlays may be called."""

from __future__ import annotations

import re

NAME = r"[a-z][a-z0-9_]{0,63}"
NAME_RULE = "small letters, digits and _, a letter first, at most 64"
"""The pattern in words."""
_PATTERN = re.compile(NAME)


def is_name(text: str) -> bool:
    """Whether a benchmark, a challenge or an overlay may be called so.

    Example:
        >>> is_name("my_own"), is_name("my-own"), is_name("../mine")
        (True, False, False)
    """
    return _PATTERN.fullmatch(text) is not None
