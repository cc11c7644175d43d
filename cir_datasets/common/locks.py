"""Locks of files where the file system has them; NFS without its lock service and some FUSE have none."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cir_metrics.errors import CirError

if TYPE_CHECKING:
    from filelock import BaseFileLock

_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


def file_lock(path: Path, *, blocking: bool = False, shared: bool = False) -> BaseFileLock:
    """A lock that ends with its process, whatever ends that; it is not held yet.

    Args:
        path: its file.
        blocking: whether to wait for a process that holds it.
        shared: whether all who ask for this path get one lock, which the thread that holds it may take again.
    """
    from filelock import FileLock

    # Not by the presence of a file where the file system knows no locks: a kill would leave it locked.
    return FileLock(path, blocking=blocking, thread_local=shared, is_singleton=shared, fallback_to_soft=False)


def acquire(lock: BaseFileLock) -> bool:
    """Take a lock; whether nobody else holds it. Where the file system has no locks, a warning says so.

    Args:
        lock: of `file_lock`.

    Raises:
        OSError: its file cannot be made or opened.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     first, second = file_lock(Path(folder, "a")), file_lock(Path(folder, "a"))
        ...     acquire(first), acquire(second)
        ...     first.release()
        (True, False)
    """
    from filelock import Timeout

    try:
        lock.acquire()
    except Timeout:
        return False
    except OSError as error:
        _warn_without_locks(Path(lock.lock_file).parent, error)
    return True


@contextmanager
def only_program(
    target: Path,
    lock: Path,
    *,
    error: type[CirError],
    busy: type[CirError],
    program: str = "program",
    forget: bool = False,
) -> Iterator[None]:
    """Keep other programs away from a file or folder for the length of the block.

    The thread that holds it may take it again, as a command does that plays and then writes.

    Args:
        target: what is written, for messages.
        lock: the file of the lock.
        error: raised where the system refuses to write there.
        busy: raised where another program, or another thread, holds it.
        program: what another one is called in the message.
        forget: whether the file of the lock is removed at the end.
    """
    held = file_lock(lock, shared=True)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        alone = acquire(held)
    except OSError as refused:
        why = refused.strerror or refused
        raise error(f"{target}: cannot be written: {why}. Fix: name another place.") from refused
    if not alone and not lock.exists():
        # Some systems say of a folder that takes no files that it is not there.
        raise error(f"{target}: cannot be written. Fix: name another place.")
    if not alone:
        raise busy(
            f"{target}: another {program} writes it. Fix: wait until that one ends, or name another place."
        )
    try:
        yield
    finally:
        if forget and held.lock_counter <= 1:
            # Before the release: afterwards it may be the lock of the next program.
            with suppress(OSError):
                lock.unlink()
        held.release()


def has_locks(folder: Path) -> bool:
    """Whether the file system of a folder has locks. Where it has none, a warning says so.

    Raises:
        OSError: nothing can be written there.
    """
    lock = file_lock(folder / f".locks-{os.urandom(4).hex()}")
    try:
        lock.acquire()
    except OSError as error:
        _warn_without_locks(folder, error)
        return False
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()
    return True


def _warn_without_locks(folder: Path, error: OSError) -> None:
    if error.errno not in _WITHOUT_LOCKS:
        raise error
    warnings.warn(
        f"{folder}: this file system has no locks ({error.strerror}), so that nothing keeps a second program "
        "out. Fix: start no other one that writes there, or name a folder on a disk with locks.",
        RuntimeWarning,
        stacklevel=4,
    )
