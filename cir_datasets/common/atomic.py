"""Files and folders that appear whole or not at all, whatever happens to the process that writes them.

A folder that is filled beside its place is locked while its process lives, and the system frees the lock with
the process, whatever ended it: so nothing of a live process is ever swept by another one, on whichever
machine that shares the disk it runs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from cir_metrics.errors import CirError

if TYPE_CHECKING:
    from filelock import BaseFileLock


@contextmanager
def whole_file(path: Path, *, durable: bool = False) -> Iterator[IO[bytes]]:
    """A file to fill, beside its place, and moved there in one step when the block ends well.

    A reader finds the old file or the new one, never half of either. The new one has the rights that the
    umask gives. What a killed process leaves is `.NAME-` and eight hexadecimal digits; nothing else of ours
    has such a name.

    Args:
        path: the file; its folder is made where it is missing.
        durable: whether it must also outlive a loss of power: it is on the disk before its name is. That
            takes milliseconds a file.

    Yields:
        The open file, for writing only.

    Raises:
        OSError: the system refuses to write there.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with whole_file(Path(folder) / "a/b.txt") as file:
        ...         file.write(b"all of it")
        ...     (Path(folder) / "a/b.txt").read_text()
        9
        'all of it'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}-{os.urandom(4).hex()}")
    # Not by mkstemp: who shares a folder with others could read none of what that makes.
    file = beside.open("xb")
    try:
        with file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    if durable:
        sync_folder(path.parent)


def write_whole(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write bytes as `whole_file` does.

    Args:
        path: the file; its folder is made where it is missing.
        content: all that it is to hold.
        durable: whether it must also outlive a loss of power.

    Raises:
        OSError: the system refuses to write there.
    """
    with whole_file(path, durable=durable) as file:
        file.write(content)


@contextmanager
def write_errors(
    path: Path, error: Callable[[str], CirError], fix: str = "make room, or name another folder."
) -> Iterator[None]:
    """Say in words what the system refuses to write.

    Args:
        path: what is written in the block, for the message.
        error: makes the error.
        fix: what a user does about it.

    Raises:
        CirError: of `error`: the block raised an OSError.

    Example:
        >>> with write_errors(Path("a"), CirError, "make room."):
        ...     raise OSError(28, "No space left on device")
        Traceback (most recent call last):
        ...
        cir_metrics.errors.CirError: a: cannot be written: No space left on device. Fix: make room.
    """
    try:
        yield
    except OSError as refused:
        why = refused.strerror or refused
        raise error(f"{path}: cannot be written: {why}. Fix: {fix}") from refused


def sync_folder(folder: Path) -> None:
    """Have the names in a folder outlive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_LOCK = ".lock"
_OLD_SECONDS = 24 * 3600.0
"""Age from which a folder without a lock is a leftover: of an earlier version of this package, or of a
process that was killed between making its folder and locking it."""


@contextmanager
def staging_folder(
    parent: Path, prefix: str, *, error: Callable[[str], CirError], fix: str, sweep_below: Path | None = None
) -> Iterator[Path]:
    """A folder to fill, below `parent`; gone afterwards, and after a kill with the next that sweeps there.

    Args:
        parent: made where it is missing.
        prefix: what the names of such folders, and of nothing else there, begin with.
        error: makes the error of a message.
        fix: what the caller would have a user do where `parent` cannot be written.
        sweep_below: what killed processes left anywhere below this folder is removed first; None removes
            nothing, as below a folder of the user's, where other things may have such names.

    Yields:
        The folder, empty.

    Raises:
        CirError: of `error`: `parent` cannot be written.

    Example:
        >>> from cir_metrics.errors import CallError
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     with staging_folder(Path(parent), ".making-", error=CallError, fix="leave.") as folder:
        ...         folder.is_dir()
        ...     folder.is_dir()
        True
        False
    """
    with write_errors(parent, error, fix):
        if sweep_below is not None:
            sweep(sweep_below, prefix)
        parent.mkdir(parents=True, exist_ok=True)
        whole, lock = _locked_folder(parent, prefix)
    try:
        folder = whole / "made"  # beside the lock, so that it can be moved away and holds what is put there
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(whole, ignore_errors=True)
        lock.release()


def sweep(root: Path, prefix: str) -> list[Path]:
    """Remove what killed processes left anywhere below a folder.

    Args:
        root: the folder.
        prefix: of the names of their folders, as `staging_folder` took it.

    Returns:
        What was removed.
    """
    # `Path.rglob` ends with an error where a folder goes while it is read, as those of other processes do.
    left = [Path(at, name) for at, names, _ in os.walk(root) for name in names if name.startswith(prefix)]
    return [path for path in sorted(left) if not path.is_symlink() and _swept(path)]


def _locked_folder(parent: Path, prefix: str) -> tuple[Path, BaseFileLock]:
    """A new folder and its lock, which is held."""
    from filelock import Timeout

    from cir_datasets.common.locks import file_lock

    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        lock = file_lock(folder / _LOCK)
        try:
            lock.acquire()
        except (FileNotFoundError, Timeout):
            continue  # another process took it for a leftover before it was locked
        except OSError:
            return folder, lock  # a file system without locks: nobody can lock there, and nobody sweeps
        if (folder / _LOCK).exists():
            return folder, lock
        lock.release()  # of a file that was swept between its making and its locking


def _swept(folder: Path) -> bool:
    """Remove a folder unless a process that lives holds it; whether it was removed."""
    from cir_datasets.common.locks import file_lock

    if not (folder / _LOCK).exists():  # looked at first: taking a lock would make its file
        return _is_old(folder) and _removed(folder)
    try:
        with file_lock(folder / _LOCK):
            return _removed(folder)
    except OSError:
        return False  # its process lives, or the file system knows no locks


def _removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _is_old(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime > _OLD_SECONDS
    except OSError:
        return False
