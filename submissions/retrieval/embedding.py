"""Embed a gallery: pictures through an encoder into the store, a shard at a time, resumable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from submissions.retrieval.store import SHARD_SIZE, Embeddings, EmbeddingStore, Shard

if TYPE_CHECKING:
    from submissions.retrieval.encoders import Encoder, Vectors
    from submissions.retrieval.pictures import Pictures


def embed_gallery(
    encoder: Encoder,
    pictures: Pictures,
    *,
    store: EmbeddingStore | None = None,
    batch_size: int = 64,
    workers: int = 2,
    shard_size: int = SHARD_SIZE,
    skip_missing: bool = False,
    progress: bool = True,
) -> Embeddings:
    """Vectors of all pictures, from the store as far as they are there.

    Args:
        encoder: of `load_encoder`, or your own.
        pictures: of `pictures_of`, or your own.
        store: where vectors are kept; None is the store in the cache.
        batch_size: images that the model takes at once.
        workers: processes that open and prepare pictures; 0 does it in this one.
        shard_size: images a shard: what is lost at most when the process is killed.
        skip_missing: give images that are missing or unreadable a vector of zeros instead of refusing; they
            stay members of the gallery and are named in `Embeddings.missing`.
        progress: whether a person who waits sees a bar.

    Raises:
        MissingImagesError: pictures are missing or unreadable; the message lists them.
        StoreError: the store cannot be written.
    """
    raise NotImplementedError


def check_pictures(pictures: Pictures, *, skip_missing: bool) -> frozenset[str]:
    """The missing ids, where they may be skipped (the Ray engine asks this before it starts).

    Raises:
        MissingImagesError: pictures are missing and `skip_missing` is false.
    """
    raise NotImplementedError


def encode_shard(
    encoder: Encoder,
    pictures: Pictures,
    shard: Shard,
    *,
    batch_size: int = 64,
    missing: frozenset[str] = frozenset(),
    skip_missing: bool = False,
) -> Vectors:
    """Vectors of one shard, in this process, with zeros for the missing."""
    raise NotImplementedError
