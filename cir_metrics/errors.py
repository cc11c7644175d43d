"""Errors of the suite: every one says what is wrong, where, and how to fix it.

`CirError` is the root. Each room has one base below it, and bad input is also a `ValueError`, never a
`KeyError` (whose text prints as a repr). `exit_code` is what the `cir` command returns: 1 when the input is
wrong, 2 when the call is.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_WANTED = 80


class CirError(Exception):
    """Root of every error that this suite raises on purpose."""

    exit_code = 1


class CallError(CirError, ValueError):
    """The call is wrong (an unknown name, a file that does not exist), whatever the input holds."""

    exit_code = 2


class UnknownNameError(CallError):
    """No benchmark, metric, method or format has that name."""


class MissingExtraError(CirError, ImportError):
    """A feature needs an optional dependency that is not installed."""

    exit_code = 2


class MetricError(CirError):
    """Base of the errors of `cir_metrics`."""


class InputError(MetricError, ValueError):
    """Predictions, references or arguments of a metric are malformed."""


def did_you_mean(wanted: object, known: Iterable[str]) -> str:
    """The hint of a message about an unknown name: the known name that is nearest, or nothing.

    Args:
        wanted: the unknown name; anything but a string, and very long strings, resemble nothing.
        known: the names that exist.

    Returns:
        A sentence with a blank before it, to be put behind another one, or "".

    Example:
        >>> did_you_mean("recal", ["recall", "map"]), did_you_mean("xyz", ["recall", "map"])
        (" Did you mean 'recall'?", '')
    """
    if not isinstance(wanted, str) or len(wanted) > _LONGEST_WANTED:
        return ""
    near = difflib.get_close_matches(wanted, [name for name in known if name != wanted], n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""
