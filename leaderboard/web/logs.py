"""The web process's log: standard error, or files that rotate; no secrets. There is no access log."""

from __future__ import annotations

import asyncio
import logging
import re
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from cir_datasets.common.terminal import visible
from cir_metrics.errors import without_passwords
from leaderboard.errors import is_passing

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_FILE_BYTES = 10 * 2**20
_FILES = 5

_TOKENS = re.compile(r"\bhf_[A-Za-z0-9]{8,}|\b(?:cir|edit)_[\w-]{20,}|(?<=[Bb]earer )[\w.~+/=-]{8,}")


def configure(folder: Path | None = None, name: str = "web.log") -> None:
    """Log warnings and errors of all loggers.

    Args:
        folder: where the file and its older parts go (50 MB together); None for standard error.
        name: the file's name.
    """
    handler: logging.Handler = logging.StreamHandler()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(
            folder / name, maxBytes=_FILE_BYTES, backupCount=_FILES - 1, encoding="utf-8"
        )
    handler.setFormatter(PlainLines(_FORMAT))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


class PlainLines(logging.Formatter):
    """Writes a message on one line, with what a terminal would obey written out, and without secrets.

    A traceback follows where the code is to be looked at, not where the machine is in trouble.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: D102
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")

    def formatException(self, ei: Any) -> str:  # noqa: D102
        if not is_passing(ei[1]):
            return super().formatException(ei)
        # A full disk or a locked database is met by many, again and again: where in the code says nothing.
        return f"{type(ei[1]).__name__}: {str(ei[1]).partition(chr(10))[0]}"

    def format(self, record: logging.LogRecord) -> str:  # noqa: D102
        return _TOKENS.sub("...", without_passwords(visible(super().format(record))))


def loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of the event loop; where it is about descriptors, a line without a traceback."""
    error = context.get("exception")
    if isinstance(error, OSError) and "accept" in context.get("message", ""):
        logging.getLogger("leaderboard.web").error("no connection can be accepted: %s", error.strerror)
    else:
        loop.default_exception_handler(context)
