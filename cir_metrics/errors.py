"""Errors of the suite: every one says what is wrong, where, and how to fix it.

`CirError` is the root. Each room has one base below it, and bad input is also a `ValueError`, never a
`KeyError` (whose text prints as a repr). `exit_code` is what the `cir` command returns: 1 when the input is
wrong, 2 when the call is. No message holds a password: addresses lose theirs when an error is made.
"""

from __future__ import annotations

import copyreg
import difflib
import re
from collections.abc import Iterable
from typing import Any

_LONGEST_WANTED = 80

_BROKEN_PASSWORD = re.compile(r'(?<=://)[^\s/?#:@"<>]*:(?![0-9]*(?:[/?#\s"<>]|$))[^\s"<>]*@')
"""User and password where a `/`, `?` or `#` of the password stands as it is: no port follows the colon."""

_PASSWORD = re.compile(r'(?<=://)[^\s/?#"<>]*@')
_SECRET = re.compile(
    r"(?<=[?&;#])([\w.-]*(?:token|key|secret|passw|pwd|sig|auth|credential)[\w.-]*=)[^\s&;#\"'<>)]+",
    re.IGNORECASE,
)
_MASK = "***"


class CopiedError(Exception):
    """An exception that survives pickle and copies, whatever its class is called with."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Its class, text and attributes: a copy, or an error of another process, calls no `__init__`.

        A pool whose results cannot be unpickled waits for ever, and an exception's own way calls the class
        with the text alone.
        """
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class CirError(CopiedError):
    """Root of every error that this suite raises on purpose; addresses in it lose their passwords."""

    exit_code = 1

    def __init__(self, *args: object) -> None:
        """Take what an exception takes, the message first."""
        super().__init__(*(without_passwords(arg) if isinstance(arg, str) else arg for arg in args))


class CallError(CirError, ValueError):
    """The call is wrong (an unknown name, a file that does not exist), whatever the input holds."""

    exit_code = 2


class UnknownNameError(CallError):
    """No benchmark, metric, method or format has that name."""

    @classmethod
    def of(cls, what: str, name: object, known: Iterable[str]) -> UnknownNameError:
        """The error of a name that is none of some.

        Args:
            what: what has names, `search` say.
            name: the unknown one.
            known: the names that there are.

        Example:
            >>> print(UnknownNameError.of("search", "flta", ["exact", "flat"]))
            no search 'flta'. Did you mean 'flat'? Fix: use one of exact, flat.
        """
        names = list(known)
        return cls(f"no {what} {name!r}.{did_you_mean(name, names)} Fix: use one of {', '.join(names)}.")


class MissingExtraError(CirError, ImportError):
    """A feature needs an optional dependency that is not installed."""

    exit_code = 2


class MetricError(CirError):
    """Base of the errors of `cir_metrics`."""


class InputError(MetricError, ValueError):
    """Predictions, references or arguments of a metric are malformed."""


class SettingError(InputError, CallError):
    """A number of draws, a seed or a level that the caller chose is out of range."""


def without_passwords(text: str) -> str:
    """A text whose addresses show neither user and password nor a token of the query.

    Args:
        text: any; of a database's address too (`postgresql://me:secret@host/db?password=secret`).

    Example:
        >>> without_passwords("https://me:secret@host.org/a/b?token=secret&page=2: no network")
        'https://***@host.org/a/b?token=***&page=2: no network'
    """
    if "://" not in text:
        return text
    for pattern in (_BROKEN_PASSWORD, _PASSWORD):
        text = pattern.sub(f"{_MASK}@", text)
    return _SECRET.sub(rf"\1{_MASK}", text)


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
    others = [name for name in known if name != wanted]
    in_small = {name.casefold(): name for name in reversed(others)}
    near = difflib.get_close_matches(wanted.casefold(), in_small, n=1, cutoff=0.5)
    return f" Did you mean {in_small[near[0]]!r}?" if near else ""
