"""Errors of the datasets room, all below `DatasetError`; and how to install what a feature lacks."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from cir_metrics.errors import CirError, MissingExtraError, without_passwords

FIX = "Fix: get the publisher's file again, or correct that record."
"""How a message about a malformed record ends."""

WITHOUT_CHECKS = (
    "set CIR_VERIFICATION_MODE=no_checks (cir has --no-checks for it, cir_datasets.load and "
    "load_dataset verification_mode='no_checks'), and scores will say so."
)
"""The way out of the checks, which works wherever a benchmark is loaded."""


class DatasetError(CirError):
    """Base of the errors of `cir_datasets`."""


class CardError(DatasetError, ValueError):
    """A benchmark card is malformed or contradicts itself."""


class SourceError(DatasetError):
    """A publisher's file cannot be found or fetched."""

    exit_code = 2


class HttpAnswerError(DatasetError):
    """What a server answers is not taken: it is late, too large, of another kind, or from elsewhere.

    Args:
        why: what is wrong, and of which server.
        fix: what to do about it, without a full stop.
        passing: whether the next attempt may get over it.
    """

    exit_code = 2

    def __init__(self, why: str, fix: str, passing: bool = False) -> None:
        """Keep all three."""
        super().__init__(why, fix, passing)
        self.why, self.fix, self.passing = *map(str, self.args[:2]), passing

    def __str__(self) -> str:
        """All of it, as a sentence."""
        return f"{self.why}. Fix: {self.fix}."


class LateAnswerError(HttpAnswerError):
    """The whole answer of a server has not come in time."""


class IntegrityError(SourceError, ValueError):
    """A file is not the one that the card pins: its size or sha256 differs."""

    exit_code = 1


class DamagedError(DatasetError, ValueError):
    """What was prepared is not on the disk as it was written."""


class RecordError(DatasetError, ValueError):
    """A publisher's file holds a record that breaks the format; the message names file and record."""


class CountError(DatasetError, ValueError):
    """The rows are not as many as the card says."""


class OverlayError(DatasetError, ValueError):
    """A filter list laid over a benchmark is malformed, or does not belong to that benchmark."""


class MissingImagesError(DatasetError, ValueError):
    """Images that a benchmark names are not in the user's folders, or their files are damaged."""


class HashingError(DatasetError, ValueError):
    """A manifest with hashes is damaged, or belongs to another benchmark."""


class CaptionRuleError(DatasetError, ValueError):
    """Captions cannot become text by that rule, or a rule is needed and none was given."""


class PublishError(DatasetError):
    """A benchmark cannot be published."""


class PushError(PublishError):
    """The Hub refused a push or could not be reached; its last revision is untouched."""

    exit_code = 2


class ConstructionError(DatasetError):
    """A benchmark cannot be made: its input, its settings or the folder of its stages forbid it."""


class UnpinnedDataWarning(UserWarning):
    """A local file is not the one that the card pins: it is used, and everything computed from it says so."""


class MissingImagesWarning(UserWarning):
    """Rows were kept although their images are missing or damaged; those images are null."""


def missing_extra(what: str, needs: str, extra: str, instead: str = "") -> MissingExtraError:
    """The error of a feature whose optional dependency is not installed.

    Args:
        what: the feature, the subject of the sentence.
        needs: the dependency.
        extra: of setup.cfg, which brings it.
        instead: what does without it, behind "or".

    Example:
        >>> print(missing_extra("an encoder", "torch", "retrieval"))
        an encoder needs torch. Fix: ... install -e ".[retrieval]" -c constraints.txt in your clone, or
        ... install "cir-benchmarks[retrieval]" once it is on PyPI
    """
    return MissingExtraError(
        f"{what} needs {needs}. Fix: {install_lines(extra)}" + (f", or {instead}" if instead else "")
    )


def install_lines(extra: str) -> str:
    """What installs an extra into this Python: from a clone, and from PyPI.

    Args:
        extra: its name in setup.cfg.

    Example:
        >>> 'install "cir-benchmarks[server]" once it is on PyPI' in install_lines("server")
        True
    """
    pip = _pip()
    return (
        f'{pip} install -e ".[{extra}]" -c constraints.txt in your clone, '
        f'or {pip} install "cir-benchmarks[{extra}]" once it is on PyPI'
    )


def upgrade_lines() -> str:
    """What brings a newer version of this package into this Python: of a clone, and from PyPI.

    Example:
        >>> upgrade_lines().startswith("git pull in your clone, or ")
        True
    """
    return f"git pull in your clone, or {_pip()} install --upgrade cir-benchmarks once it is on PyPI"


def _pip() -> str:
    """`pip` where a shell means this Python's by it."""
    found = shutil.which("pip")
    beside = found is not None and Path(found).parent == Path(sys.executable).parent
    return "pip" if beside else f"{shlex.quote(sys.executable)} -m pip"


def without_secret_cause(error: BaseException) -> BaseException | None:
    """An error to raise another one from, or None where its own text, or that of a cause, shows a password.

    Args:
        error: of a library; tracebacks print it beside ours.

    Example:
        >>> without_secret_cause(ValueError("no answer from http://me:secret@host")) is None
        True
    """
    seen: BaseException | None = error
    while seen is not None:
        if without_passwords(f"{seen} {seen!r}") != f"{seen} {seen!r}":
            return None
        seen = seen.__cause__ or seen.__context__
    return error
