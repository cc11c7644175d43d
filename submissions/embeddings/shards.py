"""One gallery's vectors on disk, whole or resumable at any moment.

A folder's name is a hash of the encoder's identity, the pictures' digest and the shard size. Shards are files
that appear whole or not at all, with their checksum in the name; when all are there they are joined to one
array that is mapped, not read. Processes claim shards by file locks, which end with the process; if two
encode the same shard all the same, either file is right. A shard or a part of the array whose checksum is
wrong counts as not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from submissions.embeddings.locks import file_lock, whole_file
from submissions.encoders.protocol import Identity, Vectors
from submissions.errors import StoreError

FORMAT = 1
"""Of the folder; part of the key, so that another format is another entry."""

SHARD_SIZE = 1024
"""Images in a shard, where nothing else is asked for."""

_SHARD_FILE = re.compile(r"(\d{6})-([0-9a-f]{64})\.npy")
_LENGTH_TOLERANCE = 1e-3
_ABANDONED_SECONDS = 3600


class Shard(NamedTuple):
    """A piece of a gallery: the images at places `start` to `stop` - 1; `number` counts from 0."""

    number: int
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors of a gallery.

    Args:
        ids: image ids, in the gallery's order.
        vectors: shape (ids, dimensions), float32, mapped from a file and read-only; rows of length 1, or of
            zeros for the missing.
        missing: ids whose picture was missing or unreadable and left out by `skip_missing`. Where it is not
            empty, what is computed from these vectors must say so (`store.MISSING_CHECK`).
        identity: of the encoder.
    """

    ids: Sequence[str]
    vectors: Vectors
    missing: frozenset[str]
    identity: Identity


class EmbeddingFolder:
    """The vectors of one gallery by one encoder, done or under way. Can be pickled.

    Args:
        path: the folder, as `EmbeddingStore.folder` made it.

    Raises:
        StoreError: it is none, or its description is damaged.
    """

    def __init__(self, path: Path) -> None:
        """See the class."""
        self.path = Path(path)
        self.key = self.path.name
        try:
            about = json.loads((self.path / "about.json").read_bytes())
            self.name = str(about["pictures"])
            self.identity = Identity(**about["identity"])
            self.images = int(about["images"])
            self.shard_size = int(about["shard_size"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{self.path}: about.json is missing or damaged. Fix: `cir embeddings rm {self.key}`, then "
                "embed again."
            ) from error
        self._good: set[tuple[int, str]] = set()

    @property
    def ids(self) -> list[str]:
        """Image ids, in the gallery's order."""
        found: list[str] = json.loads((self.path / "ids.json").read_bytes())
        return found

    def shards(self) -> list[Shard]:
        """All shards, in order."""
        starts = range(0, self.images, self.shard_size)
        return [
            Shard(number, start, min(start + self.shard_size, self.images))
            for number, start in enumerate(starts)
        ]

    def shards_to_do(self) -> list[Shard]:
        """Shards that are not there, or damaged; in order."""
        there = self._there()
        return [shard for shard in self.shards() if shard.number not in there]

    def counts(self) -> tuple[int, int]:
        """Number of images that are encoded and of those that are missing, without reading the vectors."""
        complete = self._complete()
        if complete is not None:
            return self.images, len(complete["missing"])
        numbers = {number for number, _ in self._shard_files()}
        return sum(shard.stop - shard.start for shard in self.shards() if shard.number in numbers), 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep the entry from being removed for the length of the block.

        Raises:
            StoreError: it has been removed.
        """
        with file_lock(lock_of(self.path), shared=True):
            if not (self.path / "about.json").is_file():
                raise StoreError(f"embeddings {self.key}: removed meanwhile. Fix: embed again.")
            yield

    @contextmanager
    def claim(self, shard: Shard) -> Iterator[bool]:
        """Whether this process may encode a shard: it is still to do and no other process is at it.

        The claim ends with the block, or with the process.
        """
        with file_lock(self.path / "claims" / f"{shard.number:06d}", wait=False) as free:
            # What was to do before the claim may be done by now.
            yield free and shard in self.shards_to_do()

    def write_shard(self, shard: Shard, vectors: Vectors) -> None:
        """Put a shard's vectors on disk, whole or not at all; rows of zeros are the missing.

        Raises:
            StoreError: the vectors have another shape, are not finite, not of length 1, or cannot be written.
        """
        rows = np.ascontiguousarray(vectors, dtype="<f4")
        self._check(shard, rows)
        name = f"{shard.number:06d}-{hashlib.sha256(rows.data).hexdigest()}.npy"
        try:
            write_whole(self.path / "shards" / name, lambda file: np.save(file, rows, allow_pickle=False))
        except OSError as error:
            raise StoreError(
                f"{self.path / 'shards' / name}: cannot be written: {error.strerror}. Fix: make room, or set "
                "CIR_CACHE_HOME to another folder; what is done stays done."
            ) from error

    def embeddings(self) -> Embeddings:
        """Join the shards (once) and map the vectors.

        Raises:
            StoreError: shards are still to do.
        """
        with file_lock(self.path / "claims" / "join"):
            there = self._there()
            left = len(self.shards()) - len(there)
            if left:
                raise StoreError(
                    f"embeddings {self.key} of {self.name}: {left:,} of {len(self.shards()):,} shards are "
                    "still to do. Fix: run `cir embed` again; it goes on where it stopped."
                )
            if any(kind == "file" for kind, _ in there.values()):
                self._join(there)
            complete = self._complete()
        if complete is None:
            raise StoreError(f"{self.path}: changed while it was read. Fix: embed again.")
        return Embeddings(self.ids, self._mapped(), frozenset(complete["missing"]), self.identity)

    def whole(self) -> Embeddings | None:
        """The vectors where all are there, or None; nothing is written or locked: it may be read-only."""
        complete = self._complete()
        if complete is None or not all(self._good_parts(complete["shards"])):
            return None
        vectors = self._mapped()
        if self._complete() != complete:  # joined anew meanwhile
            return None
        return Embeddings(self.ids, vectors, frozenset(complete["missing"]), self.identity)

    def set_aside(self, images: Collection[str]) -> None:
        """Count the shards that hold some images as not there, so that they are encoded again.

        Raises:
            StoreError: the folder cannot be written.
        """
        with file_lock(self.path / "claims" / "join"):
            complete = self._complete()
            if complete is None:
                return
            held = [any(image in images for image in self.ids[one.start : one.stop]) for one in self.shards()]
            checksums = [
                "" if again else sha256 for again, sha256 in zip(held, complete["shards"], strict=True)
            ]
            changed = as_json({**complete, "shards": checksums})
            try:
                write_whole(self.path / "complete.json", lambda file: file.write(changed))
            except OSError as error:
                raise StoreError(
                    f"{self.path}: cannot be written: {error.strerror}. Fix: set CIR_CACHE_HOME to a folder "
                    "that can be written."
                ) from error

    def _check(self, shard: Shard, rows: Vectors) -> None:
        wanted = (shard.stop - shard.start, self.identity.dimensions)
        if rows.shape != wanted:
            raise StoreError(
                f"shard {shard.number} of {self.name}: vectors of shape {rows.shape}, not {wanted}. "
                "Fix: correct the encoder, or the dimensions of its identity."
            )
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
        # Also true of what is not finite.
        bad = ~((np.abs(lengths - 1) <= _LENGTH_TOLERANCE) | (lengths == 0))
        if bad.any():
            place = int(np.argmax(bad))
            raise StoreError(
                f"shard {shard.number} of {self.name}: the vector of image {self.ids[shard.start + place]!r} "
                f"has length {lengths[place]:.3g}, not 1. Fix: use --dtype float32, or correct the encoder."
            )

    def _there(self) -> dict[int, tuple[str, str]]:
        """Where each good shard is, by number: in a "file" or in the "array", with name or checksum."""
        found: dict[int, tuple[str, str]] = {}
        sizes = {shard.number: shard.stop - shard.start for shard in self.shards()}
        for number, name in self._shard_files():
            if number in sizes and number not in found and self._good_file(number, name, sizes[number]):
                found[number] = ("file", name)
        complete = self._complete()
        if complete is not None:
            found |= {
                number: ("array", complete["shards"][number])
                for number, good in enumerate(self._good_parts(complete["shards"]))
                if good
            }
        return found

    def _shard_files(self) -> list[tuple[int, str]]:
        try:
            names = sorted(path.name for path in (self.path / "shards").iterdir())
        except FileNotFoundError:
            return []
        matches = (_SHARD_FILE.fullmatch(name) for name in names)
        return [(int(match[1]), match[0]) for match in matches if match]

    def _good_file(self, number: int, name: str, rows: int) -> bool:
        """Whether a shard's file is what its name says; what was found good is not read again."""
        if (number, name) in self._good:
            return True
        try:
            found = np.load(self.path / "shards" / name, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return False
        right = found.shape == (rows, self.identity.dimensions) and found.dtype == np.dtype("<f4")
        if right and hashlib.sha256(found.data).hexdigest() == name[7:71]:
            self._good.add((number, name))
            return True
        return False

    def _good_parts(self, checksums: Sequence[str]) -> list[bool]:
        """Of each shard, whether its part of the joined array has its checksum."""
        new = [shard for shard in self.shards() if (shard.number, checksums[shard.number]) not in self._good]
        if new:
            try:
                vectors = self._mapped()
            except (OSError, ValueError, EOFError):
                return [False] * len(checksums)

            def checksum(shard: Shard) -> str:
                return hashlib.sha256(vectors[shard.start : shard.stop].data).hexdigest()

            with ThreadPoolExecutor(os.cpu_count()) as pool:
                found = zip(new, pool.map(checksum, new), strict=True)
                self._good |= {
                    (one.number, sha256) for one, sha256 in found if sha256 == checksums[one.number]
                }
        return [part in self._good for part in enumerate(checksums)]

    def _mapped(self) -> Vectors:
        """The joined array, as it lies on disk.

        Raises:
            ValueError: it is damaged.
        """
        vectors = np.load(self.path / "vectors.npy", mmap_mode="r", allow_pickle=False)
        if vectors.shape != (self.images, self.identity.dimensions) or vectors.dtype != np.dtype("<f4"):
            raise ValueError
        mapped: Vectors = vectors
        return mapped

    def _complete(self) -> dict[str, Any] | None:
        """Checksums and missing ids of the joined array, or None where there is none."""
        try:
            found = json.loads((self.path / "complete.json").read_bytes())
            if len(found["shards"]) == len(self.shards()) and isinstance(found["missing"], list):
                return dict(found)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def _join(self, there: dict[int, tuple[str, str]]) -> None:
        """Make the array of shards, from files and from what is good of the last array."""
        ids = self.ids
        missing: list[str] = []
        checksums: list[str] = []
        old = self._mapped() if any(kind == "array" for kind, _ in there.values()) else None

        def write(file: IO[bytes]) -> None:
            shape = (self.images, self.identity.dimensions)
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for shard in self.shards():
                kind, where = there[shard.number]
                if kind == "array" and old is not None:
                    rows = old[shard.start : shard.stop]
                else:
                    rows = np.load(self.path / "shards" / where, allow_pickle=False)
                checksums.append(hashlib.sha256(rows.data).hexdigest())
                missing.extend(ids[shard.start + row] for row in np.flatnonzero(~rows.any(axis=1)))
                file.write(rows.data)

        try:
            write_whole(self.path / "vectors.npy", write)
            complete = as_json({"shards": checksums, "missing": missing})
            write_whole(self.path / "complete.json", lambda file: file.write(complete))
        except OSError as error:
            raise StoreError(
                f"{self.path}: the shards cannot be joined: {error.strerror}. Fix: make room for twice the "
                "vectors; what is done stays done."
            ) from error
        self._good = set(enumerate(checksums))
        for _, name in self._shard_files():
            (self.path / "shards" / name).unlink(missing_ok=True)
        for path in [*self.path.glob(".*"), *(self.path / "shards").glob(".*")]:
            _unlink_if_left(path)


def lock_of(path: Path) -> Path:
    """The lock of a folder, beside it: held in common by who writes, alone by who removes."""
    return path.parent / ".locks" / path.name


def as_json(value: Any) -> bytes:
    """Canonical JSON."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def write_whole(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Write a file that appears whole or not at all, whatever happens to the process or the machine.

    Args:
        path: the file; its folder is made.
        write: writes to the open file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        write(file)


def _unlink_if_left(path: Path) -> None:
    """Remove what a killed process was writing; what is young may still be written to."""
    try:
        if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
            path.unlink()
    except FileNotFoundError:
        pass
