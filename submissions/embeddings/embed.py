"""Embed a gallery: pictures through an encoder into the store, a shard at a time, resumable.

Batches begin anew with each shard, and a missing picture is encoded as a black one before its vector
becomes zeros: what a vector is does not depend on where an earlier run was stopped, nor on which pictures are
missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cir_datasets.common.progress import step_progress
from cir_datasets.common.shared_stages import Shard
from cir_datasets.common.terminal import counted
from cir_datasets.errors import MissingImagesError
from cir_metrics.errors import CallError
from submissions.embeddings.opening import (
    Batch,
    Opened,
    Opener,
    batches_of,
    killed_workers_explained,
    opened_batches,
)
from submissions.embeddings.pictures import still_missing
from submissions.embeddings.store import (
    SHARD_SIZE,
    EmbeddingFolder,
    Embeddings,
    EmbeddingStore,
    store_of,
)
from submissions.encoders.check import checked_vectors
from submissions.encoders.protocol import PreparingEncoder

if TYPE_CHECKING:
    from pathlib import Path

    from submissions.embeddings.pictures import Pictures
    from submissions.encoders.protocol import Encoder, Vectors

LISTED = 20
"""How many missing images a message names."""

_WAIT_SECONDS = 0.2
_FIX = (
    "Fix: get them from the publisher. cir run and cir embed can go on without them (--skip-missing, in "
    "Python skip_missing=True): they then rank last."
)
_FIX_ALL = "Fix: see that the folder of the images (--images) holds them in the publisher's layout."


@dataclass
class Timing:
    """Where the time of `embed_gallery` went, in seconds; calls add to it.

    Args:
        images: images that were encoded.
        model: in the encoder: transfer to the device, forward pass, and the vectors' way back.
        waiting: until other processes had opened pictures.
        writing: of shards.
    """

    images: int = 0
    model: float = 0.0
    waiting: float = 0.0
    writing: float = 0.0

    @property
    def total(self) -> float:
        """All of it."""
        return self.model + self.waiting + self.writing

    def text(self) -> str:
        """One line for a person.

        Example:
            >>> Timing(images=1200, model=9.0, waiting=0.9, writing=0.1).text()
            '1,200 images encoded in 10.0 s, 120 images/s, 90 % of it in the model'
        """
        if not self.images or not self.total:
            return "0 images encoded: all were in the store"
        rate = f"{self.images / self.total:,.0f} images/s"
        share = f"{100 * self.model / self.total:.0f} % of it in the model"
        return f"{counted(self.images, 'image')} encoded in {self.total:.1f} s, {rate}, {share}"


def embed_gallery(
    encoder: Encoder,
    pictures: Pictures,
    *,
    store: EmbeddingStore | str | Path | None = None,
    batch_size: int = 64,
    workers: int = 2,
    shard_size: int = SHARD_SIZE,
    skip_missing: bool = False,
    progress: bool = True,
    timing: Timing | None = None,
) -> Embeddings:
    """Vectors of all pictures, from the store as far as they are there.

    A run that is stopped, by Ctrl-C or otherwise, goes on from the last finished shard when it is called
    again. Several processes may embed the same gallery: they share the shards.

    Args:
        encoder: of `load_encoder`, or your own.
        pictures: of `pictures_of`, or your own.
        store: where vectors are kept, a store or its folder; None is the store in the cache.
        batch_size: images that the model takes at once.
        workers: processes that open and prepare pictures; 0 does it in this one.
        shard_size: images a shard; part of what is asked for, so another size encodes anew.
        skip_missing: give missing pictures a vector of zeros instead of refusing to start. Where all are
            missing it is refused nevertheless.
        progress: show a bar on a terminal, with rate and remaining time.
        timing: filled with where the time went.

    Raises:
        MissingImagesError: pictures are missing or unreadable; the message lists them.
        CallError: `batch_size`, `workers` or `shard_size` is out of range, or there are no pictures.
        StoreError: the store cannot be written.
        EncoderError: a worker process was killed, or the encoder gave what are not vectors.
    """
    if batch_size < 1 or workers < 0:
        raise CallError(
            f"batch_size={batch_size}, workers={workers}; a batch has 1 image or more, workers are 0 or "
            "more. Fix: choose other numbers."
        )
    place = store_of(store)
    missing = None
    if not place.holds(encoder.identity, pictures, shard_size=shard_size):
        missing = check_gallery(pictures, skip_missing=skip_missing)  # a refusal leaves nothing behind
    folder = place.folder(encoder.identity, pictures, shard_size=shard_size)

    def finished() -> Embeddings:
        nonlocal missing
        if missing is None:
            missing = check_gallery(pictures, skip_missing=skip_missing)
        folder.prepare()
        left = folder.parts_to_do()
        if left:
            run = _Run(
                folder, encoder, pictures, batch_size, workers, missing, skip_missing, timing or Timing()
            )
            label = f"{pictures.name}: encoding images"
            with step_progress(label, _images(left)) if progress else nullcontext(_silent) as advance:
                run.finish(left, advance)
        return folder.embeddings()

    made = folder.whole() or finished()
    if set_repaired_aside(folder, pictures, made):
        made = finished()
    if made.missing and not skip_missing:
        raise missing_error(pictures, [image for image in made.ids if image in made.missing])
    return made


def set_repaired_aside(folder: EmbeddingFolder, pictures: Pictures, made: Embeddings) -> bool:
    """Have images encoded again that were missing and can be opened now; whether there are any.

    Raises:
        StoreError: there are, and the store cannot be written.
    """
    repaired = made.missing.difference(still_missing(pictures, made.missing)) if made.missing else ()
    if repaired:
        folder.encode_again(repaired)
    return bool(repaired)


def check_pictures(pictures: Pictures, *, skip_missing: bool) -> frozenset[str]:
    """The missing ids, where they may be skipped.

    Raises:
        MissingImagesError: pictures are missing and `skip_missing` is false.
    """
    missing = pictures.missing()
    if missing and not skip_missing:
        raise missing_error(pictures, missing)
    return frozenset(missing)


def check_gallery(pictures: Pictures, *, skip_missing: bool) -> frozenset[str]:
    """The missing ids of a whole gallery, as `check_pictures`, but not all of them may be.

    Raises:
        MissingImagesError: all are missing, or some are and `skip_missing` is false.
    """
    missing = check_pictures(pictures, skip_missing=skip_missing)
    if missing and len(missing) == len(set(pictures.ids)):
        raise missing_error(pictures, pictures.ids)
    return missing


def missing_error(pictures: Pictures, missing: Sequence[str]) -> MissingImagesError:
    """The error that lists missing pictures, the first of them by id.

    Args:
        pictures: the gallery.
        missing: ids, in order.
    """
    why: Callable[[str], str] | None = getattr(pictures, "why_missing", None)
    lines = [
        f"{pictures.name}: {len(missing):,} of {len(pictures.ids):,} images are missing or cannot be read:",
        *(f"  {image}" if why is None else f"  {image}: {why(image)}" for image in missing[:LISTED]),
    ]
    if len(missing) > LISTED:
        lines.append(f"  ... and {len(missing) - LISTED:,} more")
    fix = _FIX_ALL if len(missing) == len(pictures.ids) else _FIX
    return MissingImagesError("\n".join([*lines, f"  {fix}"]))


def encode_shard(
    encoder: Encoder,
    pictures: Pictures,
    shard: Shard,
    *,
    batch_size: int = 64,
    workers: int = 0,
    missing: frozenset[str] = frozenset(),
    skip_missing: bool = False,
) -> Vectors:
    """Vectors of one shard, with zeros for the missing; the store is not touched.

    Args:
        encoder: as in `embed_gallery`.
        pictures: as in `embed_gallery`.
        shard: which images.
        batch_size: images that the model takes at once.
        workers: processes that open and prepare pictures; 0 does it in this one.
        missing: ids that `check_pictures` found.
        skip_missing: whether a picture that turns out to be damaged gets zeros too.

    Returns:
        Shape (images of the shard, dimensions), the same as `embed_gallery` makes of it.

    Raises:
        MissingImagesError: a picture cannot be opened and may not be skipped.
        EncoderError: a worker process was killed.
    """
    stream = opened_batches(_opener(encoder, pictures, missing), batches_of(shard, batch_size), workers)
    with killed_workers_explained(), closing(stream) as opened_in_order:
        skip = skip_missing or bool(missing)
        return np.concatenate([_encoded(encoder, opened, skip) for opened in opened_in_order])


@dataclass
class _Run:
    """One process's part in encoding a gallery."""

    folder: EmbeddingFolder
    encoder: Encoder
    pictures: Pictures
    batch_size: int
    workers: int
    missing: frozenset[str]
    skip_missing: bool
    timing: Timing

    def finish(self, left: Sequence[Shard], advance: Callable[[int], None]) -> None:
        """Encode what is left, and wait for what other processes are at."""
        done = 0

        def advanced(images: int) -> None:
            nonlocal done
            done += images
            advance(images)

        total = _images(left)
        while left:
            if self._any_free(left):
                self._encode(left, advanced)
            else:  # Others are at them; if one ends without finishing, we take over.
                time.sleep(_WAIT_SECONDS)
            left = self.folder.parts_to_do()
            advanced(max(0, total - _images(left) - done))

    def _any_free(self, shards: Sequence[Shard]) -> bool:
        for shard in shards:
            with self.folder.claim(shard) as ours:
                if ours:
                    return True
        return False

    def _encode(self, shards: Sequence[Shard], advance: Callable[[int], None]) -> None:
        """Encode the shards that no other process has claimed."""
        claims: dict[int, AbstractContextManager[bool]] = {}

        def claimed() -> Iterator[Batch]:
            for shard in shards:
                claim = self.folder.claim(shard)
                if claim.__enter__():
                    claims[shard.number] = claim
                    yield from batches_of(shard, self.batch_size)
                else:
                    claim.__exit__(None, None, None)

        opener = _opener(self.encoder, self.pictures, self.missing)
        parts: list[Vectors] = []
        with ExitStack() as stack:
            stack.enter_context(killed_workers_explained())
            stack.callback(lambda: [claim.__exit__(None, None, None) for claim in claims.values()])
            stream = stack.enter_context(closing(opened_batches(opener, claimed(), self.workers)))
            since = time.perf_counter()
            for opened in stream:
                since = self._spent("waiting", since)
                parts.append(_encoded(self.encoder, opened, self.skip_missing))
                since = self._spent("model", since)
                images = opened.batch.stop - opened.batch.start
                self.timing.images += images
                shard = opened.batch.shard
                if opened.batch.stop == shard.stop:
                    self.folder.write_part(shard, np.concatenate(parts))
                    parts.clear()
                    claims.pop(shard.number).__exit__(None, None, None)
                    since = self._spent("writing", since)
                advance(images)

    def _spent(self, what: str, since: float) -> float:
        now = time.perf_counter()
        setattr(self.timing, what, getattr(self.timing, what) + now - since)
        return now


def _opener(encoder: Encoder, pictures: Pictures, missing: frozenset[str]) -> Opener:
    return Opener(pictures, encoder.prepare if isinstance(encoder, PreparingEncoder) else None, missing)


def _encoded(encoder: Encoder, opened: Opened, skip_missing: bool) -> Vectors:
    """Vectors of a batch, with zeros for what could not be opened."""
    if opened.problems and not skip_missing:
        raise MissingImagesError(next(iter(opened.problems.values())))
    if isinstance(encoder, PreparingEncoder):
        vectors = encoder.encode_prepared(opened.images)
    else:
        vectors = encoder.encode_images(opened.images)
    vectors = checked_vectors(encoder, vectors, opened.batch.stop - opened.batch.start, "images")
    if opened.problems:
        vectors = vectors.copy()
        vectors[[place - opened.batch.start for place in opened.problems]] = 0
    return vectors


def _images(shards: Sequence[Shard]) -> int:
    return sum(shard.stop - shard.start for shard in shards)


def _silent(images: int) -> None:
    """Where no progress is shown."""
