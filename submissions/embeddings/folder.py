"""One gallery's vectors on disk: a run of the stage store whose parts several processes may make at once."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from cir_datasets.common.atomic import write_whole
from cir_datasets.common.shared_stages import VECTORS, Shard, SharedVectors
from cir_datasets.common.stages import CALLED
from submissions.encoders.protocol import Identity, Vectors
from submissions.errors import StoreError

FORMAT = 3
"""Of the vectors; part of the key, so that another format is another entry."""

SHARD_SIZE = 1024
"""Images in a shard, which is a part of the stage, where nothing else is asked for."""

STAGES = {VECTORS: "images through the encoder"}
_OLD = ("vectors.npy", "finished.npy", "about.json")
"""What versions up to 0.1 wrote, that which says so last."""
_LENGTH_TOLERANCE = 1e-3


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


class EmbeddingFolder(SharedVectors):
    """The vectors of one gallery by one encoder, done or under way; `EmbeddingStore.folder` makes it."""

    error = StoreError
    call_error = StoreError
    noun = "embeddings"
    room = (
        "set CIR_CACHE_HOME to a folder that can be written and has room; what is done stays done. What "
        "version 0.1 wrote is taken over once, by `cir embeddings list` of a user who may write there."
    )
    identity: Identity
    """Of the encoder; a model of the same weights may have another name here than in the settings."""

    @classmethod
    def existing(cls, folder: str | Path) -> Self:
        """The entry of a folder, whatever its settings; one of a version up to 0.1 is taken over.

        Raises:
            StoreError: there is none, it is damaged, or it is of 0.1 and cannot be written.
        """
        path = Path(folder)
        described = path / _OLD[-1]
        if not cls.begun(path):
            try:
                about = json.loads(described.read_bytes())
                name = about.pop("pictures")
                if about["format"] != FORMAT:
                    raise ValueError(f"format {about['format']}")
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise StoreError(
                    f"{path}: it has no make.json, and no sound about.json of a version up to 0.1. Fix: "
                    f"embed again, or `cir embeddings rm {path.name}`."
                ) from error
            cls.begin(path, "embeddings", STAGES, {**about, CALLED: name})
        entry = super().existing(path)
        if described.exists():
            entry._take_over()
        return entry

    def _read_state(self) -> dict[str, Any] | None:
        """The state; its settings are looked at, which the key is a hash of.

        Raises:
            StoreError: it is not there or damaged, or was written by a version up to 0.1.
        """
        state = super()._read_state()
        if state is None:
            return None
        try:
            about = dict(state["settings"])
            self.name = str(about.pop(CALLED))
            identity = Identity(**about["identity"])
            self._shape = int(about["images"]), identity.dimensions
            self._part_rows = int(about["shard_size"])
            noted = state["done"].get(VECTORS)
            sound = noted is None or [len(text) for text in noted["parts"]] == [64] * len(self.parts())
            if not sound or key_of({**about, "identity": identity.key()}) != self.key:
                raise ValueError("not what the key is a hash of")
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(self.folder / "make.json") from error
        if not hasattr(self, "identity"):
            self.identity = identity
        return state

    def _damaged(self, path: Path) -> StoreError:
        return StoreError(
            f"{path}: it is damaged. Fix: `cir embeddings rm {self.key}`; the images are encoded again when "
            "they are needed."
        )

    @property
    def key(self) -> str:
        """Names the entry."""
        return self.folder.name

    @property
    def shape(self) -> tuple[int, int]:
        """Images and dimensions."""
        return self._shape

    @property
    def part_rows(self) -> int:
        """Images of a shard."""
        return self._part_rows

    @property
    def ids(self) -> list[str]:
        """Image ids, in the gallery's order.

        Raises:
            StoreError: the list is damaged.
        """
        with suppress(OSError):
            content = (self.folder / "ids.json").read_bytes()
            if hashlib.sha256(content).hexdigest() == self.settings["ids"]:
                ids: list[str] = json.loads(content)
                return ids
        raise StoreError(
            f"{self.folder / 'ids.json'}: missing or damaged. Fix: embed again, which writes it anew; "
            "no image is encoded again."
        )

    def write_part(self, part: Shard, rows: Vectors) -> None:
        """Put a shard's vectors on disk; rows of zeros are the missing.

        Raises:
            StoreError: the vectors have another shape, are not finite, not of length 1, or cannot be written.
        """
        shape = part.stop - part.start, self.shape[1]
        if rows.shape != shape:
            raise StoreError(
                f"shard {part.number} of {self.name}: vectors of shape {rows.shape}, not {shape}. "
                "Fix: correct the encoder, or the dimensions of its identity."
            )
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
        # Also true of what is not finite.
        bad = ~((np.abs(lengths - 1) <= _LENGTH_TOLERANCE) | (lengths == 0))
        if bad.any():
            place = int(np.argmax(bad))
            raise StoreError(
                f"shard {part.number} of {self.name}: the vector of image {self.ids[part.start + place]!r} "
                f"has length {lengths[place]:.3g}, not 1. Fix: use --dtype float32, or correct the encoder."
            )
        super().write_part(part, rows)

    def embeddings(self) -> Embeddings:
        """Map the vectors.

        Raises:
            StoreError: shards are still to do.
        """
        if not self.finish():
            raise StoreError(
                f"embeddings {self.key} of {self.name}: {len(self.parts_to_do()):,} of {len(self.parts()):,} "
                "shards are still to do. Fix: run `cir embed` again; it goes on where it stopped."
            )
        vectors = self.whole()
        if vectors is None:
            raise self._damaged(self._array)
        return vectors

    def whole(self) -> Embeddings | None:
        """The vectors where all are there, or None; nothing is written or locked: it may be read-only."""
        vectors = self.array()
        if vectors is None:
            return None
        ids = self.ids
        missing = (ids[row] for row in np.flatnonzero(~vectors.any(axis=1)))
        return Embeddings(ids, vectors, frozenset(missing), self.identity)

    def encode_again(self, images: Collection[str]) -> None:
        """Count the shards that hold some images as not there.

        Raises:
            StoreError: the folder cannot be written.
        """
        ids = self.ids
        self.prepare(
            [part for part in self.parts() if any(image in images for image in ids[part.start : part.stop])]
        )

    def _take_over(self) -> None:
        """Go on with what a version up to 0.1 wrote here, as far as it is as it was written.

        Raises:
            StoreError: the folder cannot be written.
        """
        with self._locked("state", wait=True), self._writing():
            before, finished, _ = (self.folder / name for name in _OLD)
            with suppress(FileNotFoundError):
                before.replace(self._array)
            self._make_array()  # one that was cut has its length again
            with suppress(OSError, ValueError, IndexError):
                hashes, rows = np.load(finished)["sha256"], np.load(self._array, mmap_mode="r")
                for part in self.parts():
                    content = rows[part.start : part.stop].tobytes()
                    zeros = int(np.count_nonzero(~rows[part.start : part.stop].any(axis=1)))
                    with_zeros = hashlib.sha256(content + zeros.to_bytes(4, "little")).hexdigest()
                    if with_zeros.encode() == hashes[part.number]:
                        write_whole(self._hash_file(part), hashlib.sha256(content).hexdigest().encode())
            shutil.rmtree(self.folder / "claims", ignore_errors=True)
            for name in _OLD:
                (self.folder / name).unlink(missing_ok=True)
        self.finish()


def as_json(value: Any) -> bytes:
    """Canonical JSON."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def key_of(about: Mapping[str, Any]) -> str:
    """Key of an entry, of its description without names."""
    return hashlib.sha256(as_json(about)).hexdigest()[:24]
