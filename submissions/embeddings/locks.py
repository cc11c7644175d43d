"""Files between processes: locks that end with who holds them, and files that appear whole or not at all."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from submissions.errors import StoreError


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that appears whole or not at all, with the rights that the umask gives; synchronised.

    Args:
        path: the file; what lay there is replaced when the block ends well.

    Yields:
        The open file.
    """
    beside = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    # Not by mkstemp: who shares a cache with others could read none of what that makes.
    handle = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextmanager
def file_lock(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
    """Hold a lock on a file for the length of the block.

    Args:
        path: the file; made with its folder where it is missing, and never removed.
        shared: whether others may hold it as well, if they share it too.
        wait: whether to wait until it is free.

    Yields:
        Whether the lock is held; always true where `wait` is.

    Raises:
        StoreError: the file cannot be made or opened.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StoreError(
            f"{path.parent}: cannot be written: {error.strerror}. Fix: set CIR_CACHE_HOME to a folder that "
            "can be written."
        ) from error
    try:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            try:
                yield True
            finally:
                # Said aloud: a child process that was forked meanwhile has the file open too.
                fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)
