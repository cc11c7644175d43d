"""Errors of the leaderboard room, all below `LeaderboardError`."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from datetime import datetime

from cir_metrics.errors import CallError, CirError, did_you_mean


class LeaderboardError(CirError):
    """Base of the errors of `leaderboard`."""


class BoardError(LeaderboardError, ValueError):
    """A board's YAML is malformed, or names a benchmark or metric that does not exist."""


class SubmissionStoreError(LeaderboardError):
    """The store cannot be opened, was written by a newer version, or its file was replaced while in use."""

    exit_code = 2


class ConflictError(LeaderboardError):
    """Another process has recorded an event of the same submission first."""


class FileStoreError(LeaderboardError):
    """The place of the rank files cannot be read or written now (no room, no right, no network); it may pass.

    Args:
        message: what, where, how to fix it; without any key or token.
        status: the HTTP status of an answer because of it: 503, or 507 where there is no room.
    """

    exit_code = 2

    def __init__(self, message: str, *, status: int = 503) -> None:
        """Keep the status."""
        super().__init__(message)
        self.status = status


class LostFileError(LeaderboardError):
    """A stored rank file is missing or damaged: that does not pass."""


class PassingError(LeaderboardError):
    """The machine is in trouble that may pass (no space, no memory, no descriptors): to be tried again."""


class GroundTruthError(PassingError):
    """The ground truth of a sealed board cannot be read, or is not one: its organiser sees to it."""


class ChildCrashedError(LeaderboardError):
    """The process that judged a file ended without an answer, and no limit had ended it."""


_PASSING_ERRORS = frozenset(
    (
        errno.EAGAIN,
        errno.EDQUOT,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.EROFS,
        errno.ESTALE,
        errno.ETIMEDOUT,
    )
)
_PASSING_SQLITE = (
    "SQLITE_BUSY",
    "SQLITE_CANTOPEN",
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_LOCKED",
    "SQLITE_NOMEM",
    "SQLITE_READONLY",
)


def is_passing(error: BaseException | None) -> bool:
    """Whether an error, or one behind it, is trouble of the machine that may pass.

    Example:
        >>> is_passing(OSError(errno.ENOSPC, "no space")), is_passing(ValueError("an image twice"))
        (True, False)
    """
    while error is not None:
        if isinstance(error, PassingError | FileStoreError | SubmissionStoreError):
            return True
        if isinstance(error, OSError) and error.errno in _PASSING_ERRORS:
            return True
        # The database's own error lies behind the library's; its name goes on: SQLITE_IOERR_WRITE.
        if str(getattr(error, "sqlite_errorname", "")).startswith(_PASSING_SQLITE):
            return True
        error = error.__cause__ or error.__context__
    return False


class ServeError(LeaderboardError, CallError):
    """The server cannot be started as asked (the port is taken, the home cannot be written)."""


class RemoteError(LeaderboardError, CallError):
    """The leaderboard asked for cannot be reached, or answered in a way that is not ours."""


class ReceiptError(LeaderboardError, ValueError):
    """A receipt is malformed, was changed, is another server's, or is for another file."""


class UploadRefusedError(LeaderboardError, ValueError):
    """An upload is refused before it becomes a submission.

    Args:
        code: a word that programs may rely on (`unknown-board`, `too-large`, ...).
        message: what is wrong and where.
        fix: what the sender can do.
        status: the HTTP status, 4xx.
        resets_at: when a limit that was met ends, UTC.
        board_offered: the board that the file names, where it was sent to another.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        fix: str,
        status: int = 400,
        resets_at: datetime | None = None,
        board_offered: str | None = None,
    ) -> None:
        """Keep the parts, for a JSON answer, beside the one text."""
        super().__init__(f"{code}: {message}\n  Fix: {fix}")
        if code in ("unknown-board", "missing-board"):
            self.exit_code = CallError.exit_code
        self.code = code
        self.message = message
        self.fix = fix
        self.status = status
        self.resets_at = resets_at
        self.board_offered = board_offered

    @classmethod
    def of(
        cls,
        case: str,
        *,
        resets_at: datetime | None = None,
        board_offered: str | None = None,
        **facts: object,
    ) -> UploadRefusedError:
        """The refusal of a case in `refusals.yaml`.

        Args:
            case: its name: the code, and behind a slash which of the code's cases.
            resets_at: see the class.
            board_offered: see the class.
            **facts: what the case's texts name.

        Example:
            >>> UploadRefusedError.of("missing-reason", action="hide").message
            'to hide needs a reason.'
        """
        from cir_datasets.common.yaml import package_yaml

        texts = package_yaml("leaderboard", "refusals.yaml")[case]
        facts |= {"resets_at": resets_at, "board_offered": board_offered}
        message, fix = (str(texts[part]).format(**facts) for part in ("message", "fix"))
        return cls(
            case.partition("/")[0],
            message,
            fix=fix,
            status=texts["status"],
            resets_at=resets_at,
            board_offered=board_offered,
        )

    def to_dict(self) -> dict[str, str]:
        """The refusal as JSON."""
        later = {} if self.resets_at is None else {"resets_at": self.resets_at.isoformat()}
        offered = {} if self.board_offered is None else {"board_offered": self.board_offered}
        return {"code": self.code, "message": self.message, "fix": self.fix, **later, **offered}


def refuse_unknown(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse a name that nobody would read: a misspelt one would be ignored in silence.

    Args:
        names: as they were written.
        known: those that are read.
        what: what they name, `query parameter`.

    Raises:
        UploadRefusedError: `unknown-name`.

    Example:
        >>> refuse_unknown(["publsh"], ["board", "publish"], "field")
        Traceback (most recent call last):
        ...
        leaderboard.errors.UploadRefusedError: unknown-name: no field 'publsh' here. Did you mean 'publish'?
          Fix: use one of board, publish, or leave it out
    """
    listed = list(known)
    for name in names:
        if name not in listed:
            raise UploadRefusedError(
                "unknown-name",
                f"no {what} {name[:80]!r} here.{did_you_mean(name, listed)}",
                fix=f"use one of {', '.join(listed)}, or leave it out" if listed else "leave it out",
                status=422,
            )
