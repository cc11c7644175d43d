"""A stage of vectors that several programs make together, each its parts, on one machine or on many.

    01-vectors.part.npy     the array at its full size, so that a lack of room shows before the first part
    01-vectors.parts/       of each part that is there the sha256 (hex) of its rows
    01-vectors.npy          the array, once all parts are there; their hashes are in make.json

A program claims a part by a lock, which ends with the program, and writes its rows; once they are on the disk
it writes their hash. Rows without their hash count as not there, so that what a killed program left half
written is never taken for vectors. If two programs do make the same part, either result is right, and a
mixture of both has the hash of neither.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cir_datasets.common.atomic import whole_file, write_errors, write_whole
from cir_datasets.common.locks import acquire, file_lock
from cir_datasets.common.stages import Stages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VECTORS = "vectors"
_LOCKS, _STATE_LOCK = ".claims", "state"
_NUMBER_BYTES = 4


class Shard(NamedTuple):
    """The rows `start` to `stop` - 1; `number` counts from 0."""

    number: int
    start: int
    stop: int


class SharedVectors(Stages, ABC):
    """A run whose one stage, an array of vectors, is made in parts by several programs."""

    @classmethod
    def begin(cls, folder: Path, kind: str, stages: Mapping[str, str], settings: Mapping[str, Any]) -> None:
        """Write the state of a run where there is none; another program's is not written over.

        Raises:
            CirError: of `error`: it cannot be written.
        """
        lock = file_lock(folder / _LOCKS / _STATE_LOCK, blocking=True)
        with write_errors(folder, cls.error, cls.room):
            acquire(lock)
            try:
                if not cls.begun(folder):
                    cls(folder, kind, stages, settings)
            finally:
                lock.release()

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Of the array: its rows and dimensions."""

    @property
    @abstractmethod
    def part_rows(self) -> int:
        """Rows of a part, from 1; the last may have fewer."""

    @cached_property
    def _good(self) -> set[tuple[int, str]]:
        """Numbers and hashes of parts that were read, and are as they were written."""
        return set()

    def parts(self) -> list[Shard]:
        """All parts, in order."""
        rows, size = self.shape[0], self.part_rows
        return [
            Shard(number, start, min(start + size, rows)) for number, start in enumerate(range(0, rows, size))
        ]

    def parts_to_do(self, among: Sequence[Shard] | None = None) -> list[Shard]:
        """Parts that are not there, or damaged, in order; what was found good is not read again."""
        parts = self.parts() if among is None else among
        self._read_again()
        new = [part for part in parts if (part.number, self._hash(part)) not in self._good]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for part, rows_hash in zip(new, pool.map(self._rows_hash, new), strict=True):
                if rows_hash and rows_hash == self._hash(part):
                    self._good.add((part.number, rows_hash))
        return [part for part in parts if (part.number, self._hash(part)) not in self._good]

    def damaged(self) -> list[Shard]:
        """Parts that were written and whose rows are not what they were, in order."""
        return [part for part in self.parts_to_do() if self._hash(part)]

    def counts(self) -> tuple[int, int]:
        """Rows that are there, and those of zeros among them once all are; no rows are read."""
        if self.is_done(VECTORS):
            return self.shape[0], int(self._done[VECTORS]["failed"])
        return sum(part.stop - part.start for part in self.parts() if self._hash(part)), 0

    def prepare(self, again: Collection[Shard] = ()) -> None:
        """Make the array where it is not there; to be called before a claim.

        Args:
            again: parts that are to be made again; damaged ones always are.

        Raises:
            CirError: of `error`: there is no room for the array, nothing can be written, or it was removed.
        """
        with self._locked(_STATE_LOCK, wait=True), self._writing():
            to_do = {*self.parts_to_do(), *again}
            if not self.is_done(VECTORS):
                for part in again:
                    self._hash_file(part).unlink(missing_ok=True)
            else:
                if not to_do:
                    return
                shutil.rmtree(self._hashes, ignore_errors=True)
                for part in self.parts():
                    if part not in to_do:
                        write_whole(self._hash_file(part), self._hash(part).encode(), durable=True)
                del self._done[VECTORS]
                self._save()
            self._make_array()

    @contextmanager
    def claim(self, part: Shard) -> Iterator[bool]:
        """Whether this program may make a part: it is still to do and no other program is at it.

        The claim ends with the block, or with the program.

        Raises:
            CirError: of `error`: the claim cannot be written, or the run was removed.
        """
        with self._locked(f"{part.number:06d}", wait=False) as free:
            # What was to do before the claim may be done by now.
            yield free and bool(self.parts_to_do([part]))

    def write_part(self, part: Shard, rows: NDArray[np.float32]) -> None:
        """Put the rows of a part on the disk, and then their hash.

        Raises:
            CirError: of `error`: they cannot be written, or the run was removed.
        """
        content = rows.astype("<f4").tobytes()
        with self._writing():
            # Not through a map of the array: where a disk is full, that ends the process.
            with self._array.open("r+b") as file:
                file.seek(self._place(part.start))
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            write_whole(self._hash_file(part), hashlib.sha256(content).hexdigest().encode(), durable=True)

    def finish(self) -> bool:
        """Give the array its name where all parts are there; whether they are.

        Raises:
            CirError: of `error`: it cannot be written, or the run was removed.
        """
        import numpy as np

        with self._locked(_STATE_LOCK, wait=True), self._writing():
            if self.parts_to_do():
                return False
            if not self.is_done(VECTORS):
                rows = np.load(self._array, mmap_mode="r")
                zeros = len(rows) - int(np.count_nonzero(rows.any(axis=1)))
                hashes = [self._hash(part) for part in self.parts()]
                array = self.path(VECTORS, ".npy")
                self._array.replace(array)
                noted = {"file": array.name, "rows": len(rows), "failed": zeros, "parts": hashes}
                self._done[VECTORS] = noted
                self._save()
            shutil.rmtree(self._hashes, ignore_errors=True)
        return True

    def array(self) -> NDArray[np.float32] | None:
        """The array, mapped and read-only, or None where parts are to do; nothing is written or locked."""
        import numpy as np

        if self.parts_to_do() or not self.is_done(VECTORS):
            return None
        rows: NDArray[np.float32] = np.load(self._array, mmap_mode="r")
        return rows

    @classmethod
    def in_use(cls, folder: Path) -> bool:
        """Whether a program has a claim on a part of a run, which may be damaged.

        Raises:
            CirError: of `error`: the folder cannot be written.
        """
        for claim in (folder / _LOCKS).glob("[0-9]*"):
            lock = file_lock(claim)
            with write_errors(folder, cls.error, cls.room):
                free = acquire(lock)
            lock.release()
            if not free:
                return True
        return False

    def _check(self, stage: str) -> None:
        """Nothing of the whole file: each part has a hash, and is made again where it is damaged."""

    def _read_again(self) -> None:
        """What other programs have noted meanwhile."""
        state = self._read_state()
        if state is not None:
            self._state = state

    @cached_property
    def _header(self) -> bytes:
        import numpy as np

        header = io.BytesIO()
        described = {"descr": "<f4", "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(header, described)
        return header.getvalue()

    @property
    def _array(self) -> Path:
        return self.path(VECTORS, ".npy" if self.is_done(VECTORS) else ".part.npy")

    @property
    def _hashes(self) -> Path:
        return self.path(VECTORS, ".parts")

    def _hash_file(self, part: Shard) -> Path:
        return self._hashes / f"{part.number:06d}"

    def _hash(self, part: Shard) -> str:
        """What was written of a part; "" where it is to do."""
        if self.is_done(VECTORS):
            return str(self._done[VECTORS]["parts"][part.number])
        with suppress(OSError):
            return self._hash_file(part).read_text()
        return ""

    def _place(self, row: int) -> int:
        """Where a row begins in the file."""
        return len(self._header) + row * self.shape[1] * _NUMBER_BYTES

    def _rows_hash(self, part: Shard) -> str:
        """That of the rows as they lie there; "" where the file is not there, or of another array."""
        with suppress(OSError), self._array.open("rb") as file:
            if self._hash(part) and file.read(len(self._header)) == self._header:
                file.seek(self._place(part.start))
                rows = file.read(self._place(part.stop) - file.tell())
                return hashlib.sha256(rows).hexdigest()
        return ""

    def _make_array(self) -> None:
        """Make an array of zeros where none is there; one that was cut has its length again."""
        array, finished = self.path(VECTORS, ".part.npy"), self.path(VECTORS, ".npy")
        if finished.exists():
            # Another program ended between giving it its name and noting that, or the other way round.
            finished.replace(array)
        size = self._place(self.shape[0])
        with suppress(FileNotFoundError), array.open("rb") as file:
            if file.read(len(self._header)) == self._header:
                os.truncate(array, size)
                return
        with whole_file(array, durable=True) as file:
            file.write(self._header)
            if sys.platform == "linux":
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)

    @contextmanager
    def _locked(self, name: str, *, wait: bool) -> Iterator[bool]:
        """Hold a lock of the folder for a block; whether it is held, always where it waits."""
        lock = file_lock(self.folder / _LOCKS / name, blocking=wait)
        with self._writing():
            free = acquire(lock)
        try:
            yield free
        finally:
            lock.release()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Say in words that the run was removed, or what the system refuses to write."""
        # First: where it is gone, a lock or a file would make the folder anew.
        if not self.begun(self.folder):
            raise self.error(f"{self.noun} {self.folder.name}: removed meanwhile. Fix: make them again.")
        with write_errors(self.folder, self.error, self.room):
            yield
