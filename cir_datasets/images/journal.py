"""What has been hashed so far, kept line by line so that a killed run loses next to nothing.

A line is a JSON object: path, size and time of the last change of a picture file, and what was read in it. A
file whose size or time differs from its line is read again. The last line of a path counts; a line cut short
by a kill is passed over.
"""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType

import orjson

from cir_datasets.errors import HashingError
from cir_datasets.images.picture import PictureFacts

_FIELDS = {field.name for field in fields(PictureFacts)}


class HashJournal:
    """The journal of one publisher's pictures; use it in a `with` statement.

    Args:
        path: the file; made where it is missing.
    """

    def __init__(self, path: Path) -> None:
        """Read what is there and open the file for more."""
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._known = dict(_read(path))
            self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            if _ends_within_a_line(path):
                os.write(self._handle, b"\n")
        except OSError as error:
            raise _not_writable(path, error) from error

    def __enter__(self) -> HashJournal:
        """The journal itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file; every line is in it already."""
        os.close(self._handle)

    def facts(self, path: str, num_bytes: int, mtime_ns: int) -> PictureFacts | None:
        """What was read in a file before, if it is still the same file."""
        known = self._known.get(path)
        same = known is not None and (known.num_bytes, known.mtime_ns) == (num_bytes, mtime_ns)
        return known if same else None

    def add(self, path: str, facts: PictureFacts) -> None:
        """Write a line, whole, so that two runs at once do not mix theirs.

        Raises:
            HashingError: the disk is full, say.
        """
        try:
            os.write(self._handle, orjson.dumps({"path": path, **asdict(facts)}) + b"\n")
        except OSError as error:
            raise _not_writable(self.path, error) from error
        self._known[path] = facts


def _read(path: Path) -> list[tuple[str, PictureFacts]]:
    if not path.exists():
        return []
    found = []
    with path.open("rb") as file:
        for line in file:
            try:
                entry = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(entry, dict) and entry.keys() == {"path", *_FIELDS}:
                found.append((entry.pop("path"), PictureFacts(**entry)))
    return found


def _ends_within_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _not_writable(path: Path, error: OSError) -> HashingError:
    return HashingError(
        f"{path}: cannot be written: {error.strerror}. Fix: make room, or set CIR_CACHE_HOME to a folder of "
        "yours; what was hashed so far is kept."
    )
