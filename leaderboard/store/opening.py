"""The store and the files that a leaderboard's settings name."""

from __future__ import annotations

from leaderboard.settings import Settings
from leaderboard.store import Store
from leaderboard.store.files import FileStore, open_files


def open_store(chosen: Settings) -> Store:
    """The store; a new database is refused beside rank files, whose own was lost.

    Raises:
        SubmissionStoreError: see `Store`.
    """
    return Store(chosen.database_url, lambda: any(True for _ in files_of(chosen).names()))


def files_of(chosen: Settings) -> FileStore:
    """The rank files.

    Raises:
        FileStoreError: their place cannot be used.
    """
    return open_files(chosen.files_at or chosen.files, chosen.home)
