"""One gallery's vectors on disk, resumable at any moment.

`vectors.npy` is made at its full size before the first image is encoded. A process claims a shard (so many
images) by a file lock, which ends with the process, writes its rows, and once they are on the disk the
shard's checksum into `finished.npy`. Rows without a checksum, or with another, count as not there: what a
killed process left half written is never taken for vectors. If two processes encode the same shard all the
same, either is right, and a mixture of both has the checksum of neither.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.locks import acquire, file_lock
from submissions.encoders.protocol import Identity, Vectors
from submissions.errors import StoreError

FORMAT = 3
"""Of the folder; part of the key, so that another format is another entry."""

SHARD_SIZE = 1024
"""Images in a shard, where nothing else is asked for."""

_VECTORS, _FINISHED = "vectors.npy", "finished.npy"
_CHECKSUM = np.dtype([("sha256", "S64"), ("missing", "<u4")])
"""Of one shard: the sha256 (hex) of its rows and of how many of them are missing, and that number.

It is empty while the shard is to do."""
_LENGTH_TOLERANCE = 1e-3


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
        StoreError: it is not one, its description is damaged, or it is of another store format.
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
            self.digest = str(about["digest"])
            del about["pictures"]  # a name, which the key does not know
            if key_of({**about, "identity": self.identity.key()}) != self.key:
                raise ValueError("the key is that of another description")
            written = int(about["format"])
            self.ids_sha256 = str(about["ids"]) if written == FORMAT else ""
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{self.path}: about.json is missing or damaged. Fix: `cir embeddings rm {self.key}`, then "
                "embed again."
            ) from error
        if written != FORMAT:
            raise StoreError(
                f"{self.path}: of store format {written}, which is not read; this is format {FORMAT}. Fix: "
                f"`cir embeddings rm {self.key}`; the images are encoded again when they are needed."
            )
        self._good: set[tuple[int, bytes]] = set()

    @property
    def ids(self) -> list[str]:
        """Image ids, in the gallery's order.

        Raises:
            StoreError: the list is damaged.
        """
        try:
            content = (self.path / "ids.json").read_bytes()
        except OSError:
            content = b""
        if hashlib.sha256(content).hexdigest() != self.ids_sha256:
            raise StoreError(
                f"{self.path / 'ids.json'}: missing or damaged. Fix: embed again, which writes it anew; "
                "no image is encoded again."
            )
        found: list[str] = json.loads(content)
        return found

    def shards(self) -> list[Shard]:
        """All shards, in order."""
        starts = range(0, self.images, self.shard_size)
        return [
            Shard(number, start, min(start + self.shard_size, self.images))
            for number, start in enumerate(starts)
        ]

    def shards_to_do(self, among: Sequence[Shard] | None = None) -> list[Shard]:
        """Shards that are not there, or damaged, in order; what was found good is not read again."""
        shards = self.shards() if among is None else among
        finished, vectors = self._finished(), self._vectors()
        if finished is None or vectors is None:
            return list(shards)
        new = [shard for shard in shards if (shard.number, _sha256(finished, shard)) not in self._good]
        self._good |= {(shard.number, _sha256(finished, shard)) for shard in _sound(new, vectors, finished)}
        return [shard for shard in shards if (shard.number, _sha256(finished, shard)) not in self._good]

    def damaged(self) -> list[Shard]:
        """Shards that were finished and whose rows are not what they were, in order; all rows are read."""
        finished, vectors = self._finished(), self._vectors()
        if finished is None:  # which were finished is not known
            return self.shards() if any((self.path / name).exists() for name in (_VECTORS, _FINISHED)) else []
        written = [shard for shard in self.shards() if _sha256(finished, shard)]
        sound = set() if vectors is None else set(_sound(written, vectors, finished))
        return [shard for shard in written if shard not in sound]

    def any_missing(self) -> bool:
        """Whether images were left out, by what is written or, where that is damaged, by the rows."""
        finished, vectors = self._finished(), self._vectors()
        if finished is None or vectors is None:
            return False
        return bool(finished["missing"].any()) or any(
            not vectors[shard.start : shard.stop].any(axis=1).all()
            for shard in self.shards()
            if _sha256(finished, shard)
        )

    def counts(self) -> tuple[int, int]:
        """Number of images that are encoded and of those that are missing, without reading the vectors."""
        finished = self._finished()
        if finished is None:
            return 0, 0
        done = sum(shard.stop - shard.start for shard in self.shards() if _sha256(finished, shard))
        return done, int(finished["missing"][finished["sha256"] != b""].sum())

    def prepare(self) -> None:
        """Make the arrays where they are not there, at their full size; to be called before a claim.

        Raises:
            StoreError: there is no room for the vectors, the folder cannot be written, or it was removed.
        """
        try:
            (self.path / "claims").mkdir(exist_ok=True)
            with _locked(self.path, "arrays"):
                _make(self.path / _VECTORS, "<f4", (self.images, self.identity.dimensions))
                _make(self.path / _FINISHED, _CHECKSUM, (len(self.shards()),))
        except OSError as error:
            _refuse(self.path, error)

    @contextmanager
    def claim(self, shard: Shard) -> Iterator[bool]:
        """Whether this process may encode a shard: it is still to do and no other process is at it.

        The claim ends with the block, or with the process.

        Raises:
            StoreError: the claim cannot be written, or the entry was removed.
        """
        with _locked(self.path, f"{shard.number:06d}", wait=False) as free:
            # What was to do before the claim may be done by now.
            yield free and bool(self.shards_to_do([shard]))

    def write_shard(self, shard: Shard, vectors: Vectors) -> None:
        """Put a shard's vectors on disk, and then their checksum; rows of zeros are the missing.

        Raises:
            StoreError: the vectors have another shape, are not finite, not of length 1, or cannot be written.
        """
        rows = np.ascontiguousarray(vectors, dtype="<f4")
        self._check(shard, rows)
        missing = int(np.count_nonzero(~rows.any(axis=1)))
        checksum = (_checksum(rows, missing), missing)
        try:
            _put(self.path / _VECTORS, shard.start, rows)
            _put(self.path / _FINISHED, shard.number, np.array([checksum], dtype=_CHECKSUM))
        except OSError as error:
            _refuse(self.path, error)

    def embeddings(self) -> Embeddings:
        """Map the vectors.

        Raises:
            StoreError: shards are still to do.
        """
        made = self.whole()
        if made is None:
            left = len(self.shards_to_do())
            raise StoreError(
                f"embeddings {self.key} of {self.name}: {left:,} of {len(self.shards()):,} shards are "
                "still to do. Fix: run `cir embed` again; it goes on where it stopped."
            )
        return made

    def whole(self) -> Embeddings | None:
        """The vectors where all are there, or None; nothing is written or locked: it may be read-only."""
        finished, vectors, shards = self._finished(), self._vectors(), self.shards()
        if finished is None or vectors is None or len(_sound(shards, vectors, finished)) < len(shards):
            return None
        ids = self.ids
        missing = [
            ids[shard.start + row]
            for shard in shards
            if finished["missing"][shard.number]
            for row in np.flatnonzero(~vectors[shard.start : shard.stop].any(axis=1))
        ]
        return Embeddings(ids, vectors, frozenset(missing), self.identity)

    def set_aside(self, images: Collection[str]) -> None:
        """Count the shards that hold some images as not there, so that they are encoded again.

        Raises:
            StoreError: the folder cannot be written.
        """
        ids = self.ids
        self.prepare()
        for shard in self.shards():
            if any(image in images for image in ids[shard.start : shard.stop]):
                try:
                    _put(self.path / _FINISHED, shard.number, np.zeros(1, dtype=_CHECKSUM))
                except OSError as error:
                    _refuse(self.path, error)

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

    def _vectors(self) -> Vectors | None:
        """The array as it lies on disk, of a cut file what is left, or None where there is none."""
        return _rows_left(self.path / _VECTORS, np.dtype("<f4"), (self.images, self.identity.dimensions))

    def _finished(self) -> NDArray[Any] | None:
        """What is known of each shard, or None where the list is not there or damaged."""
        left = _rows_left(self.path / _FINISHED, _CHECKSUM, (len(self.shards()),))
        if left is None:
            return None
        whole = np.full(len(self.shards()), np.array((b"cut off", 0), dtype=_CHECKSUM))
        whole[: len(left)] = left
        return whole


def as_json(value: Any) -> bytes:
    """Canonical JSON."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def key_of(about: Mapping[str, Any]) -> str:
    """Key of an entry, of its description without names."""
    return hashlib.sha256(as_json(about)).hexdigest()[:24]


def being_written(path: Path) -> bool:
    """Whether a process has a claim on a part of a folder.

    Raises:
        StoreError: the folder cannot be written.
    """
    for claim in (path / "claims").glob("*"):
        with _locked(path, claim.name, wait=False) as free:
            if not free:
                return True
    return False


@contextmanager
def _locked(folder: Path, name: str, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock of a folder for the length of the block; yields whether it is held, always where it waits.

    Raises:
        StoreError: its file cannot be made or opened.
    """
    lock = file_lock(folder / "claims" / name, blocking=wait)
    try:
        (folder / "claims").stat()  # where it is gone, filelock would make it
        free = acquire(lock)
    except OSError as error:
        _refuse(folder, error)
    try:
        yield free
    finally:
        lock.release()


def _sound(shards: Iterable[Shard], vectors: Vectors, finished: NDArray[Any]) -> list[Shard]:
    """Those whose rows have their checksum."""
    written = [shard for shard in shards if _sha256(finished, shard)]

    def checksum(shard: Shard) -> bytes:
        missing = int(finished["missing"][shard.number])
        return _checksum(vectors[shard.start : shard.stop], missing).encode()

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = zip(written, pool.map(checksum, written), strict=True)
        return [shard for shard, sha256 in found if sha256 == _sha256(finished, shard)]


def _checksum(rows: Vectors, missing: int) -> str:
    """The sha256 (hex) of a shard's rows and of how many of them are missing."""
    found = hashlib.sha256(rows.data)
    found.update(missing.to_bytes(4, "little"))
    return found.hexdigest()


def _rows_left(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any] | None:
    """Map an array, read-only; of a file that was cut the whole rows that are left, None of another array."""
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            if np.lib.format.read_array_header_1_0(file) != (shape, False, dtype):
                return None
            offset, size = file.tell(), os.fstat(file.fileno()).st_size
        whole = (size - offset) // (dtype.itemsize * math.prod(shape[1:]))
        return np.memmap(path, dtype, "r", offset, (min(whole, shape[0]), *shape[1:]))
    except (OSError, ValueError, EOFError):
        return None


def _sha256(finished: NDArray[Any], shard: Shard) -> bytes:
    return bytes(finished["sha256"][shard.number])


def _make(path: Path, dtype: Any, shape: tuple[int, ...]) -> None:
    """Make an array of zeros where it is not there; the caller holds the lock.

    Raises:
        OSError: it cannot be written, or there is no room for it.
    """
    try:
        # Mapped so, a file that was cut has its length again: only what it lost is to do.
        found = np.lib.format.open_memmap(path, mode="r+")
        if found.shape == shape and found.dtype == dtype:
            return
    except (ValueError, EOFError, FileNotFoundError):
        pass
    beside = path.with_name(f".{path.name}")
    made = np.lib.format.open_memmap(beside, mode="w+", dtype=dtype, shape=shape)
    made.flush()
    with beside.open("r+b") as file:
        if sys.platform == "linux":  # a lack of room shows now, not after hours
            os.posix_fallocate(file.fileno(), 0, beside.stat().st_size)
        os.fsync(file.fileno())
    beside.replace(path)


def _put(path: Path, place: int, rows: NDArray[Any]) -> None:
    """Write rows of an array, and return once they are on the disk.

    Not through a map of it: where a disk is full, that ends the process.

    Raises:
        OSError: they cannot be written.
    """
    offset = np.lib.format.open_memmap(path, mode="r").offset
    with path.open("r+b") as file:
        file.seek(offset + place * rows[0].nbytes)
        file.write(rows.tobytes())
        file.flush()
        os.fsync(file.fileno())


def _refuse(path: Path, error: OSError) -> NoReturn:
    if not path.exists():
        raise StoreError(f"embeddings {path.name}: removed meanwhile. Fix: embed again.") from error
    raise StoreError(
        f"{path}: cannot be written: {error.strerror or error}. Fix: set CIR_CACHE_HOME to a folder that can "
        "be written and has room; what is done stays done."
    ) from error
