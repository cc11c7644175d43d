"""The embedding store: vectors on disk by what they were made of, whole or resumable at any moment.

A folder's key is a hash of the encoder's identity, the pictures' digest and the shard size. Shards are files
that appear whole or not at all, with their checksum in the name; when all are there they are joined to one
array that is mapped, not read. Processes claim shards by file locks, which end with the process.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from submissions.retrieval.encoders import Identity, Vectors
from submissions.retrieval.pictures import Pictures

SHARD_SIZE = 1024
"""Images in a shard, where nothing else is asked for."""


class Shard(NamedTuple):
    """A piece of a gallery: the images at places `start` to `stop` - 1."""

    index: int
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
            empty, what is computed from these vectors must say so (`MISSING_CHECK`).
        identity: of the encoder.
    """

    ids: Sequence[str]
    vectors: Vectors
    missing: frozenset[str]
    identity: Identity


MISSING_CHECK = "images"
"""Name of the check that was skipped where `Embeddings.missing` is not empty."""


@dataclass(frozen=True)
class Stored:
    """One entry of the store.

    Args:
        key: names it (`cir embeddings rm KEY`).
        pictures: whose pictures, a benchmark's id.
        identity: of the encoder.
        images: number of images.
        done: number of images that are encoded.
        missing: number of images left out.
        num_bytes: size on disk.
    """

    key: str
    pictures: str
    identity: Identity
    images: int
    done: int
    missing: int
    num_bytes: int


class EmbeddingFolder:
    """The vectors of one gallery by one encoder, done or under way. Can be pickled.

    Args:
        path: the folder; `EmbeddingStore.folder` makes it.
    """

    def __init__(self, path: Path) -> None:
        """See the class."""
        raise NotImplementedError

    path: Path
    key: str
    identity: Identity
    ids: Sequence[str]

    def shards(self) -> list[Shard]:
        """All shards, in order."""
        raise NotImplementedError

    def shards_to_do(self) -> list[Shard]:
        """Shards that are not there, or damaged; in order."""
        raise NotImplementedError

    @contextmanager
    def claim(self, shard: Shard) -> Iterator[bool]:
        """Whether this process may encode a shard: it is still to do and no other process is at it.

        The claim ends with the block, or with the process.
        """
        raise NotImplementedError

    def write_shard(self, shard: Shard, vectors: Vectors) -> None:
        """Put a shard's vectors on disk, whole or not at all; rows of zeros are the missing.

        Raises:
            StoreError: the vectors have another shape, are not finite or not of length 1, or cannot be written.
        """
        raise NotImplementedError

    def embeddings(self) -> Embeddings:
        """Join the shards (once) and map the vectors.

        Raises:
            StoreError: shards are still to do.
        """
        raise NotImplementedError


class EmbeddingStore:
    """All embeddings below one folder.

    Args:
        root: the folder; None is `embeddings` in the cache (`CIR_CACHE_HOME`).
    """

    def __init__(self, root: Path | None = None) -> None:
        """See the class."""
        raise NotImplementedError

    def folder(
        self, identity: Identity, pictures: Pictures, *, shard_size: int = SHARD_SIZE
    ) -> EmbeddingFolder:
        """The folder of a gallery's vectors by an encoder; made where it is not there."""
        raise NotImplementedError

    def list(self) -> builtins.list[Stored]:
        """What the store holds, by key."""
        raise NotImplementedError

    def remove(self, key: str) -> int:
        """Remove an entry and return the bytes that were freed.

        Raises:
            StoreError: no entry has that key, or a process is writing to it.
        """
        raise NotImplementedError
