"""Files that appear whole or not at all: the store's and the checkpoints of heads."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


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
