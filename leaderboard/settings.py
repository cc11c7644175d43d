"""What a leaderboard server is given from outside: where it keeps its state, and how large a file may be."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from cir_metrics.errors import CallError

DEFAULT_MAX_UPLOAD_MB = 16
"""Upper limit of an uploaded file in MB of 2**20 bytes; the largest of these boards needs less than 5."""


@dataclass(frozen=True)
class Settings:
    """Settings of one server.

    Args:
        home: folder of the database and of the stored files; made when it does not exist.
        max_upload_bytes: an upload of more bytes is refused.
    """

    home: Path
    max_upload_bytes: int = DEFAULT_MAX_UPLOAD_MB * 2**20

    @property
    def database_url(self) -> str:
        """SQLAlchemy's URL of the store."""
        return f"sqlite:///{self.home / 'leaderboard.sqlite'}"

    @property
    def files(self) -> Path:
        """Folder of the stored rank files."""
        return self.home / "files"


def default_home() -> Path:
    """`CIR_LEADERBOARD_HOME`, else `leaderboard` in the user's data folder."""
    configured = os.environ.get("CIR_LEADERBOARD_HOME")
    if configured:
        return Path(configured).expanduser().absolute()
    return Path(platformdirs.user_data_dir("cir-benchmarks")) / "leaderboard"


def read(home: Path | None = None) -> Settings:
    """Settings from the environment (`CIR_LEADERBOARD_HOME`, `CIR_LEADERBOARD_MAX_UPLOAD_MB`).

    Args:
        home: the folder asked for on the command line; it goes before the environment.

    Raises:
        CallError: the limit is not a positive number of MB.
    """
    written = os.environ.get("CIR_LEADERBOARD_MAX_UPLOAD_MB", str(DEFAULT_MAX_UPLOAD_MB))
    if not written.isdecimal() or int(written) < 1:
        raise CallError(
            f"CIR_LEADERBOARD_MAX_UPLOAD_MB={written!r}: not a whole number of MB, 1 or more. "
            f"Fix: leave it unset ({DEFAULT_MAX_UPLOAD_MB} MB) or write, for example, 64."
        )
    chosen = default_home() if home is None else home.expanduser().absolute()
    return Settings(home=chosen, max_upload_bytes=int(written) * 2**20)
