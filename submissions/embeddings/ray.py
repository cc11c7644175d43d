"""Embed a gallery on many machines: Ray Data hands its shards to workers that hold the model.

The machine that asks finds missing pictures, holds the store and writes every shard; workers open pictures,
encode them and send vectors back. They read pictures and the encoder's files at the paths that the asking
machine uses, and never see the store. Shards, files and keys are those of `embed_gallery`, and the vectors
too, byte for byte, where processors and threads a worker are alike.
"""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_datasets.common.progress import step_progress
from cir_datasets.common.shared_stages import Shard
from cir_datasets.errors import MissingImagesError
from cir_metrics.errors import CallError, CirError, MissingExtraError
from submissions.embeddings.embed import (
    check_gallery,
    encode_shard,
    missing_error,
    set_repaired_aside,
)
from submissions.embeddings.ray_cluster import Cluster, connected
from submissions.embeddings.store import (
    SHARD_SIZE,
    EmbeddingFolder,
    Embeddings,
    EmbeddingStore,
    store_of,
)
from submissions.encoders.extras import needs_ray
from submissions.errors import EncoderError

if TYPE_CHECKING:
    from pathlib import Path

    from submissions.embeddings.pictures import Pictures
    from submissions.encoders.protocol import Encoder, Identity, Vectors

_CLAIMED_AT_ONCE = 200
"""Shards; each claim is an open file, and a process may open a thousand or fewer."""

_WAIT_SECONDS = 0.5
_TOLD_AS = {one.__name__: one for one in (EncoderError, MissingExtraError, MissingImagesError)}
"""What a worker's error becomes on the machine that asked, by its name; others are an EncoderError."""


@dataclass(frozen=True)
class Task:
    """What a worker must know. Can be pickled.

    Args:
        load: makes the encoder.
        identity: the encoder must have.
        pictures: the gallery.
        missing: ids that are known to be missing.
        skip_missing: whether a picture that turns out to be damaged gets zeros too.
        batch_size: images that the model takes at once.
        readers: processes of a worker that open and prepare pictures.
        retries: how often a shard is begun anew after its worker died.
    """

    load: Callable[[], Encoder]
    identity: Identity
    pictures: Pictures
    missing: frozenset[str]
    skip_missing: bool
    batch_size: int
    readers: int
    retries: int


class Begun:
    """Counts how often each shard was begun: Ray tries a shard that kills its worker without end."""

    def __init__(self) -> None:
        """See the class."""
        self._times: Counter[int] = Counter()

    def begin(self, number: int) -> int:
        """Note that a shard is begun; how often it was, this time included."""
        self._times[number] += 1
        return self._times[number]


class ShardEncoder:
    """A worker: holds the model and turns rows that name a shard into rows with its vectors.

    Args:
        task: what to encode, and with what.
        begun: handle of the actor that counts.
    """

    def __init__(self, task: Task, begun: Any) -> None:
        """See the class."""
        self._task = task
        self._begun = begun
        self._encoder: Encoder | None = None

    def __call__(self, rows: Any) -> Any:
        """Encode the shards that a pyarrow table names.

        What is wrong with pictures or encoder comes back as a row: an exception would reach the other side
        wrapped in several of Ray's, without its class.
        """
        import pyarrow

        made = []
        for row in rows.to_pylist():
            answer = {"number": row["number"], "vectors": b"", "error": "", "message": ""}
            try:
                answer["vectors"] = self._vectors(Shard(**row)).astype("<f4").tobytes()
            except CirError as problem:
                answer["error"] = type(problem).__name__
                answer["message"] = f"on {socket.gethostname()}: {problem}"
            made.append(answer)
        columns = [("number", pyarrow.int64()), ("vectors", pyarrow.large_binary())]
        columns += [("error", pyarrow.string()), ("message", pyarrow.string())]
        return pyarrow.Table.from_pylist(made, schema=pyarrow.schema(columns))

    def _vectors(self, shard: Shard) -> Vectors:
        import ray

        task = self._task
        times = ray.get(self._begun.begin.remote(shard.number))
        if times > task.retries + 1:
            raise EncoderError(
                f"a worker died {times - 1:,} times at images {shard.start:,} to {shard.stop - 1:,} of "
                f"{task.pictures.name}, perhaps for memory. Fix: lower batch_size, or give a worker more "
                "of a machine (cpus_per_worker); finished shards are kept."
            )
        if self._encoder is None:
            encoder = task.load()
            if encoder.identity != task.identity:
                raise EncoderError(
                    f"the encoder is {encoder.identity}, not {task.identity} as on the machine that asked. "
                    "Fix: bring the same files and the same versions of this package, torch and transformers "
                    "to all machines."
                )
            self._encoder = encoder
        return encode_shard(
            self._encoder,
            task.pictures,
            shard,
            batch_size=task.batch_size,
            workers=task.readers,
            missing=task.missing,
            skip_missing=task.skip_missing,
        )


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
        EncoderError: a worker's encoder is another than this machine's, or a worker died too often.
        StoreError: the store cannot be written.
    """
    needs_ray("embedding on many machines")
    if batch_size < 1 or readers < 0:
        raise CallError(
            f"batch_size={batch_size}, readers={readers}; a batch has 1 image or more, readers are 0 or "
            "more. Fix: choose other numbers."
        )
    identity = load().identity
    folder = store_of(store).folder(identity, pictures, shard_size=shard_size)

    def finished() -> Embeddings:
        missing = check_gallery(pictures, skip_missing=skip_missing)
        folder.prepare()
        left = folder.parts_to_do()
        if left:
            where = cluster or Cluster()
            task = Task(load, identity, pictures, missing, skip_missing, batch_size, readers, where.retries)
            label = f"{pictures.name}: encoding images with Ray"
            bar = step_progress(label, _images(left)) if progress else nullcontext(lambda _: None)
            with bar as advance, connected(where) as room:
                _finish(folder, task, room, left, advance)
        return folder.embeddings()

    made = folder.whole() or finished()
    if set_repaired_aside(folder, pictures, made):
        made = finished()
    if made.missing and not skip_missing:
        raise missing_error(pictures, [image for image in made.ids if image in made.missing])
    return made


def _finish(
    folder: EmbeddingFolder,
    task: Task,
    room: Cluster,
    left: Sequence[Shard],
    advance: Callable[[int], None],
) -> None:
    """Have all shards encoded, and wait for those that other processes are at."""
    while left:
        before = _images(left)
        with ExitStack() as stack:
            claims = _claims(folder, left, stack)
            if not claims:
                time.sleep(_WAIT_SECONDS)
            for shard, vectors in _encoded(task, room, [shard for shard, _ in claims.values()]):
                folder.write_part(shard, vectors)
                claims.pop(shard.number)[1].__exit__(None, None, None)
                advance(shard.stop - shard.start)
                before -= shard.stop - shard.start
        left = folder.parts_to_do()
        advance(max(0, before - _images(left)))


def _claims(
    folder: EmbeddingFolder, shards: Sequence[Shard], stack: ExitStack
) -> dict[int, tuple[Shard, AbstractContextManager[bool]]]:
    """Claims on shards that no other process is at; what is left of them ends with the stack."""
    claims: dict[int, tuple[Shard, AbstractContextManager[bool]]] = {}
    stack.callback(lambda: [claim.__exit__(None, None, None) for _, claim in claims.values()])
    for shard in shards:
        if len(claims) == _CLAIMED_AT_ONCE:
            break
        claim = folder.claim(shard)
        if claim.__enter__():
            claims[shard.number] = shard, claim
        else:
            claim.__exit__(None, None, None)
    return claims


def _encoded(task: Task, room: Cluster, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Vectors]]:
    """Shards with their vectors, as workers finish them.

    Raises:
        MissingImagesError: pictures cannot be opened on a worker's machine.
        EncoderError: a worker has another encoder, or died too often.
    """
    import ray
    import ray.data

    if not shards:
        return
    by_number = {shard.number: shard for shard in shards}
    data: Any = ray.data
    # A block a shard: what a worker is given, and what is given to another when it dies.
    rows = data.from_items([shard._asdict() for shard in shards], override_num_blocks=len(shards))
    begun = ray.remote(Begun).options(num_cpus=0, max_restarts=-1, max_task_retries=-1).remote()
    done = rows.map_batches(
        ShardEncoder,
        fn_constructor_args=(task, begun),
        batch_size=None,
        batch_format="pyarrow",
        compute=data.ActorPoolStrategy(min_size=1, max_size=room.workers),
        num_cpus=room.cpus,
        num_gpus=room.gpus,
    )
    for table in done.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
        for row in table.to_pylist():
            if row["error"]:
                raise _TOLD_AS.get(row["error"], EncoderError)(row["message"])
            shard = by_number[row["number"]]
            vectors = np.frombuffer(row["vectors"], dtype="<f4")
            vectors = vectors.reshape(shard.stop - shard.start, task.identity.dimensions)
            _check_zeros(task, shard, vectors)
            yield shard, vectors


def _check_zeros(task: Task, shard: Shard, vectors: Vectors) -> None:
    """See that what a worker could not open cannot be opened here either.

    Raises:
        MissingImagesError: it can: that machine lacks pictures, and zeros for them would be wrong.
    """
    for row in np.flatnonzero(~vectors.any(axis=1)):
        place = shard.start + int(row)
        if task.pictures.ids[place] in task.missing:
            continue
        try:
            task.pictures.open(place)
        except MissingImagesError:
            continue
        raise MissingImagesError(
            f"{task.pictures.name}: image {task.pictures.ids[place]!r} can be opened here and not on a "
            "worker's machine. Fix: bring the pictures to the same path on every machine of the cluster."
        )


def _images(shards: Sequence[Shard]) -> int:
    return sum(shard.stop - shard.start for shard in shards)
