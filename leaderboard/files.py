"""The stored copies of what was sent, by sha256: `files/ab/<sha256>.json`.

A file counts as kept only when its bytes, its name and its folder's entry are on the disk.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from cir_metrics.atomic import sync_folder

_STALE_SECONDS = 24 * 3600


@dataclass(frozen=True)
class KeptFile:
    """A durable copy.

    Args:
        sha256: of its bytes, hex.
        size: bytes.
        path: where it lies.
    """

    sha256: str
    size: int
    path: Path


class IncomingFile:
    """A file on its way in: written below `incoming/`, counted and hashed as it comes.

    Args:
        folder: root of the file store.
        check: called with the number of bytes so far before more are written; raises to refuse.
    """

    def __init__(self, folder: Path, check: Callable[[int], None]) -> None:
        """Open an empty file."""
        self._folder = folder
        self._check = check
        incoming = folder / "incoming"
        incoming.mkdir(parents=True, exist_ok=True)
        self._path = incoming / f"{secrets.token_hex(8)}.part"
        self._handle: BinaryIO = self._path.open("xb")
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, chunk: bytes) -> None:
        """Append bytes, unless they are too many."""
        self._check(self.size + len(chunk))
        self._handle.write(chunk)
        self._digest.update(chunk)
        self.size += len(chunk)

    def keep(self) -> KeptFile:
        """Make it durable under its hash; the same bytes lie there once."""
        self._handle.flush()
        os.fsync(self._handle.fileno())
        self._handle.close()
        sha256 = self._digest.hexdigest()
        target = path_of(self._folder, sha256)
        target.parent.mkdir(exist_ok=True)
        self._path.replace(target)
        for folder in (target.parent, self._folder):
            sync_folder(folder)
        return KeptFile(sha256, self.size, target)

    def discard(self) -> None:
        """Remove it; does nothing after `keep`."""
        self._handle.close()
        self._path.unlink(missing_ok=True)


def path_of(folder: Path, sha256: str) -> Path:
    """Where the file of that hash lies."""
    return folder / sha256[:2] / f"{sha256}.json"


def sweep(folder: Path) -> None:
    """Remove incoming files that a crash left behind a day ago or earlier."""
    for part in (folder / "incoming").glob("*.part"):
        if part.stat().st_mtime < time.time() - _STALE_SECONDS:
            part.unlink(missing_ok=True)
