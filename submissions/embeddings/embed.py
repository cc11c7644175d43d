"""Embed a gallery: pictures through an encoder into the store, a shard at a time, resumable.

Batches begin anew with each shard, and a missing picture is encoded as a black one before its vector
becomes zeros: what a vector is does not depend on where an earlier run was stopped, nor on which pictures are
missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cir_datasets.common.progress import step_progress
from cir_datasets.common.shared_stages import Shard
from cir_datasets.common.terminal import counted
from cir_datasets.errors import MissingImagesError
from cir_metrics.errors import CallError
from submissions.embeddings.opening import (
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
    from submissions.encoders.protocol import Encoder, Identity, Vectors

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
    spent = timing or Timing()

    def encoded(shards: Iterator[Shard], missing: frozenset[str], advance: Callable[[int], None]) -> Encoded:
        opener, skip = _opener(encoder, pictures, missing), skip_missing or bool(missing)
        return _encoded(encoder, opener, shards, batch_size, workers, skip, spent, advance)

    label = f"{pictures.name}: encoding images" if progress else None
    return embedded(
        encoder.identity, pictures, encoded, store, shard_size, skip_missing=skip_missing, label=label
    )


Encoded: TypeAlias = "Generator[tuple[Shard, Vectors], None, None]"
"""Shards with their vectors."""

Encoding: TypeAlias = "Callable[[Iterator[Shard], frozenset[str], Callable[[int], None]], Encoded]"
"""Takes shards, ids that are known to be missing, and what to call with each number of images that are done.

It takes a shard, with which a claim goes, when it begins it, and gives them in any order."""


def embedded(
    identity: Identity,
    pictures: Pictures,
    encode: Encoding,
    store: EmbeddingStore | str | Path | None,
    shard_size: int,
    *,
    skip_missing: bool,
    label: str | None,
) -> Embeddings:
    """Vectors of all pictures, from the store as far as they are there.

    Args:
        identity: of the encoder.
        pictures: the gallery.
        encode: encodes what is not there.
        store: as in `embed_gallery`.
        shard_size: as in `embed_gallery`.
        skip_missing: as in `embed_gallery`.
        label: of the bar that a person who waits sees; None shows none.
    """
    place = store_of(store)
    missing = None
    if not place.holds(identity, pictures, shard_size=shard_size):
        missing = check_gallery(pictures, skip_missing=skip_missing)  # a refusal leaves nothing behind
    folder = place.folder(identity, pictures, shard_size=shard_size)

    def finished() -> Embeddings:
        nonlocal missing
        if missing is None:
            missing = check_gallery(pictures, skip_missing=skip_missing)
        folder.prepare()
        if left := folder.parts_to_do():
            with step_progress(label, _images(left)) if label else nullcontext(_silent) as advance:
                _finish(folder, left, encode, missing, advance)
        return folder.embeddings()

    made = folder.whole() or finished()
    repaired = made.missing.difference(still_missing(pictures, made.missing)) if made.missing else ()
    if repaired:
        folder.encode_again(repaired)
        made = finished()
    if made.missing and not skip_missing:
        raise missing_error(pictures, [image for image in made.ids if image in made.missing])
    return made


def _finish(
    folder: EmbeddingFolder,
    left: list[Shard],
    encode: Encoding,
    missing: frozenset[str],
    advance: Callable[[int], None],
) -> None:
    """Have the shards that are left encoded, and wait for what other processes are at."""
    done, total = 0, _images(left)
    claims: dict[int, AbstractContextManager[bool]] = {}

    def advanced(images: int) -> None:
        nonlocal done
        done += images
        advance(images)

    def claimed() -> Iterator[Shard]:
        for shard in left:
            claim = folder.claim(shard)
            if claim.__enter__():
                claims[shard.number] = claim
                yield shard
            else:
                claim.__exit__(None, None, None)

    while left:
        if _any_free(folder, left):
            with ExitStack() as stack:
                stack.callback(lambda: [claim.__exit__(None, None, None) for claim in claims.values()])
                encoded = stack.enter_context(closing(encode(claimed(), missing, advanced)))
                for shard, vectors in encoded:
                    folder.write_part(shard, vectors)
                    claims.pop(shard.number).__exit__(None, None, None)
        else:  # Others are at them; if one ends without finishing, we take over.
            time.sleep(_WAIT_SECONDS)
        left = folder.parts_to_do()
        advanced(max(0, total - _images(left) - done))


def _any_free(folder: EmbeddingFolder, shards: Sequence[Shard]) -> bool:
    """Whether one can be claimed. The claim ends here: processes that open pictures would keep it."""
    for shard in shards:
        with folder.claim(shard) as ours:
            if ours:
                return True
    return False


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
    opener, skip = _opener(encoder, pictures, missing), skip_missing or bool(missing)
    ((_, vectors),) = _encoded(encoder, opener, iter([shard]), batch_size, workers, skip, Timing(), _silent)
    return vectors


def _encoded(
    encoder: Encoder,
    opener: Opener,
    shards: Iterator[Shard],
    batch_size: int,
    workers: int,
    skip_missing: bool,
    timing: Timing,
    advance: Callable[[int], None],
) -> Encoded:
    """Shards with their vectors, in order; what the time goes into is added to `timing`."""
    since = time.perf_counter()

    def spent(what: str) -> None:
        nonlocal since
        now = time.perf_counter()
        setattr(timing, what, getattr(timing, what) + now - since)
        since = now

    batches = (batch for shard in shards for batch in batches_of(shard, batch_size))
    parts: list[Vectors] = []
    with killed_workers_explained(), closing(opened_batches(opener, batches, workers)) as stream:
        for opened in stream:
            spent("waiting")
            parts.append(_vectors(encoder, opened, skip_missing))
            spent("model")
            images = opened.batch.stop - opened.batch.start
            timing.images += images
            if opened.batch.stop == opened.batch.shard.stop:
                yield opened.batch.shard, np.concatenate(parts)
                parts.clear()
                spent("writing")
            advance(images)


def _opener(encoder: Encoder, pictures: Pictures, missing: frozenset[str]) -> Opener:
    return Opener(pictures, encoder.prepare if isinstance(encoder, PreparingEncoder) else None, missing)


def _vectors(encoder: Encoder, opened: Opened, skip_missing: bool) -> Vectors:
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
