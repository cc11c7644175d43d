"""Folders that are filled beside their place; what a killed process left of them is swept by the next one.

The folder of a process that lives is locked, and the system frees the lock with the process, whatever ended
it: so nothing of a live process is ever swept, on whichever machine that shares the disk it runs.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCK = ".lock"
_OLD_SECONDS = 24 * 3600.0
"""Age from which a folder without a lock is a leftover: of an earlier version of this package, or of a
process that was killed between making its folder and locking it."""


@contextmanager
def staging_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A folder to fill, below `parent`; gone afterwards, and after a kill with the next `sweep`.

    Args:
        parent: made where it is missing.
        prefix: what the names of such folders, and of nothing else there, begin with.

    Yields:
        The folder, empty but for the file `.lock`.

    Raises:
        OSError: `parent` cannot be written.

    Example:
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     with staging_folder(Path(parent), ".making-") as folder:
        ...         folder.is_dir()
        ...     folder.is_dir()
        True
        False
    """
    parent.mkdir(parents=True, exist_ok=True)
    folder, lock = _locked_folder(parent, prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep(root: Path, prefix: str) -> list[Path]:
    """Remove what killed processes left anywhere below a folder.

    Args:
        root: the folder.
        prefix: of the names of their folders, as `staging_folder` took it.

    Returns:
        What was removed.
    """
    left = [path for path in sorted(root.rglob(f"{prefix}*")) if path.is_dir() and not path.is_symlink()]
    return [path for path in left if _swept(path)]


def _locked_folder(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new folder and the handle that holds its lock."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            return folder, lock  # a file system without locks: nobody can lock there, and nobody sweeps
        if folder.is_dir():
            return folder, lock
        os.close(lock)  # swept between the two steps


def _swept(folder: Path) -> bool:
    """Remove a folder unless a process that lives holds it; whether it was removed."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except FileNotFoundError:
        return _is_old(folder) and _removed(folder)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _removed(folder)
    except OSError:
        return False  # its process lives, or the file system knows no locks
    finally:
        os.close(lock)


def _removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _is_old(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime > _OLD_SECONDS
    except OSError:
        return False
