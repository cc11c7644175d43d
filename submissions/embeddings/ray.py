"""Embed a gallery on many machines: shards go to workers that hold the model.

The machine that asks finds missing pictures, holds the store and writes every shard; workers open pictures,
encode them and send vectors back. They read pictures and the encoder's files at the paths that the asking
machine uses, and never see the store. Shards, files and keys are those of `embed_gallery`, and the vectors
too, byte for byte, where processors and threads a worker are alike.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cir_datasets.common.shared_stages import Shard
from cir_datasets.errors import MissingImagesError
from cir_metrics.errors import CallError, CirError, MissingExtraError
from submissions.cluster import Cluster, RayEngine, made_once
from submissions.embeddings.embed import Encoded, embedded, encode_shard
from submissions.embeddings.folder import SHARD_SIZE, Embeddings
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.extras import needs_ray
from submissions.errors import EncoderError

if TYPE_CHECKING:
    from pathlib import Path

    from submissions.embeddings.pictures import Pictures
    from submissions.encoders.protocol import Encoder, Identity, Vectors

_ERRORS = (EncoderError, MissingExtraError, MissingImagesError)
"""What a worker's error is on the machine that asked, too; another one is an EncoderError."""


@dataclass(frozen=True)
class _ShardWork:
    """Encodes shards on a worker. Can be pickled.

    Args:
        load: makes the encoder; pickled.
        identity: the encoder must have.
        pictures: the gallery.
        missing: ids that are known to be missing.
        skip_missing: whether a picture that turns out to be damaged gets zeros too.
        batch_size: images that the model takes at once.
        readers: processes of a worker that open and prepare pictures.
    """

    load: bytes
    identity: Identity
    pictures: Pictures
    missing: frozenset[str]
    skip_missing: bool
    batch_size: int
    readers: int

    def __call__(self, shard: Shard) -> Vectors:
        """The vectors of a shard; an error says which machine it is of."""
        try:
            encoder: Encoder = made_once(self.load)
            if encoder.identity != self.identity:
                raise EncoderError(
                    f"the encoder is {encoder.identity}, not {self.identity} as on the machine that asked. "
                    "Fix: bring the same files and the same versions of this package, torch and transformers "
                    "to all machines."
                )
            return encode_shard(
                encoder,
                self.pictures,
                shard,
                batch_size=self.batch_size,
                workers=self.readers,
                missing=self.missing,
                skip_missing=self.skip_missing,
            )
        except CirError as problem:
            kind = type(problem) if isinstance(problem, _ERRORS) else EncoderError
            raise kind(f"on {socket.gethostname()}: {problem}") from problem


def embed_gallery_on_ray(
    load: Callable[[], Encoder],
    pictures: Pictures,
    *,
    cluster: Cluster | None = None,
    store: EmbeddingStore | str | Path | None = None,
    batch_size: int = 64,
    readers: int = 0,
    shard_size: int = SHARD_SIZE,
    skip_missing: bool = False,
    progress: bool = True,
) -> Embeddings:
    """Vectors of all pictures, from the store as far as they are there, the rest encoded by Ray's workers.

    A call that is stopped goes on from the finished shards when it is repeated, with this engine or with
    `embed_gallery`. A worker that dies is replaced and its shards are encoded again.

    Args:
        load: makes the encoder, here (for its identity) and in each worker; can be pickled:
            `functools.partial(load_encoder, "openai/clip-vit-large-patch14", revision="...")`.
        pictures: as in `embed_gallery`; workers open them at the same paths.
        cluster: where workers run; None is this machine, a worker a processor.
        store: as in `embed_gallery`; only this machine needs it.
        batch_size: images that the model takes at once.
        readers: processes of each worker that open and prepare pictures ahead of the model; 0 does it in the
            worker itself.
        shard_size: images a shard: what a worker is given at once, and what is lost at most when it dies.
        skip_missing: as in `embed_gallery`; a picture that this machine can open and a worker cannot is an
            error all the same.
        progress: whether a person who waits sees a bar.

    Raises:
        MissingImagesError: pictures are missing or unreadable, here or on a worker's machine.
        MissingExtraError: Ray is not installed.
        CallError: a number is out of range, no cluster answers, or it has no room for a worker.
        EncoderError: a worker's encoder is another than this machine's.
        SubmissionError: a worker died too often.
        StoreError: the store cannot be written.
    """
    needs_ray("embedding on many machines")
    if batch_size < 1 or readers < 0:
        raise CallError(
            f"batch_size={batch_size}, readers={readers}; a batch has 1 image or more, readers are 0 or "
            "more. Fix: choose other numbers."
        )
    identity = load().identity

    def encoded(shards: Iterator[Shard], missing: frozenset[str], advance: Callable[[int], None]) -> Encoded:
        import ray

        pickled: bytes = ray.cloudpickle.dumps(load)
        work = _ShardWork(pickled, identity, pictures, missing, skip_missing, batch_size, readers)
        by_number: dict[int, Shard] = {}

        def numbered() -> Iterator[tuple[int, Shard]]:
            for shard in shards:
                by_number[shard.number] = shard
                yield shard.number, shard

        def named(number: int) -> str:
            _, start, stop = by_number[number]
            return f"images {start:,} to {stop - 1:,} of {pictures.name}"

        for number, vectors in RayEngine(cluster or Cluster(), named).map(work, numbered()):
            shard = by_number[number]
            _check_zeros(work, shard, vectors)
            yield shard, vectors
            advance(shard.stop - shard.start)

    label = f"{pictures.name}: encoding images with Ray" if progress else None
    return embedded(identity, pictures, encoded, store, shard_size, skip_missing=skip_missing, label=label)


def _check_zeros(work: _ShardWork, shard: Shard, vectors: Vectors) -> None:
    """See that what a worker could not open cannot be opened here either.

    Raises:
        MissingImagesError: it can: that machine lacks pictures, and zeros for them would be wrong.
    """
    for row in np.flatnonzero(~vectors.any(axis=1)):
        place = shard.start + int(row)
        if work.pictures.ids[place] in work.missing:
            continue
        try:
            work.pictures.open(place)
        except MissingImagesError:
            continue
        raise MissingImagesError(
            f"{work.pictures.name}: image {work.pictures.ids[place]!r} can be opened here and not on a "
            "worker's machine. Fix: bring the pictures to the same path on every machine of the cluster."
        )
