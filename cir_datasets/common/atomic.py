"""Files that appear whole or not at all, whatever happens to the process that writes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


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


def sync_folder(folder: Path) -> None:
    """Have the names in a folder outlive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
