"""Publishers' files that were downloaded before: where they are kept, and whether they are the pinned."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.paths import cache_home

if TYPE_CHECKING:
    from cir_datasets.registry.schema import Source

ORIGIN_SUFFIX = ".origin.json"


@dataclass(frozen=True)
class Pin:
    """What a publisher's file must be."""

    sha256: str
    num_bytes: int


def place(name: str, source: Source, file: str) -> Path:
    """Where a downloaded file is kept."""
    return cache_home() / "sources" / name / (source.revision or "unpinned") / file


def kept_copy(name: str, source: Source, file: str, pin: Pin | None) -> Path | None:
    """An earlier download of the file, if it is there and still the pinned one."""
    target = place(name, source, file)
    if not target.is_file():
        return None
    return target if pin is None or matches(target, pin) else None


def revision_of(path: Path) -> str | None:
    """The publisher's revision that a downloaded file was taken at, where it is known."""
    record = path.with_name(path.name + ORIGIN_SUFFIX)
    if not record.is_file():
        return None
    revision = json.loads(record.read_text(encoding="utf-8")).get("revision")
    return None if revision is None else str(revision)


def matches(path: Path, pin: Pin) -> bool:
    """Whether a file has the size and the content that are pinned."""
    if path.stat().st_size != pin.num_bytes:
        return False
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest() == pin.sha256
