"""File locks that end with the process that holds them, so that a killed process leaves none behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_lock(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
    """Hold a lock on a file for the length of the block.

    Args:
        path: the file; made with its folder where it is missing, and never removed.
        shared: whether others may hold it as well, if they share it too.
        wait: whether to wait until it is free.

    Yields:
        Whether the lock is held; always true where `wait` is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
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
