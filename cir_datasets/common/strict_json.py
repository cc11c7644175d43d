"""JSON as its standard has it: no key twice, no NaN, and no number that would not be kept."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

_MOST_DIGITS = 100
"""Digits of an integer: far more than any id has, far fewer than Python refuses."""
TOO_DEEP = "its lists or objects are nested too deeply"


class StrictJsonError(ValueError):
    """A text that is not read; its words say where and why, without a full stop."""


def strict_json(text: str) -> Any:
    """The value of a text.

    Raises:
        StrictJsonError: it is not JSON, or holds what this package does not take.

    Example:
        >>> strict_json('{"a": [1, 2]}')
        {'a': [1, 2]}
    """
    try:
        return DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise StrictJsonError(f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from error
    except RecursionError as error:
        raise StrictJsonError(TOO_DEEP) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise StrictJsonError(f"the key {key!r:.120} occurs twice in one object")
            seen.add(key)
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise StrictJsonError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise StrictJsonError(f"the number {digits} is too large to be kept")
    return number


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise StrictJsonError(f"an integer of {len(digits):,} digits is too large to be kept")
    return int(digits)


DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole
)
