"""Open and prepare pictures in other processes, while the model works on those before.

What comes out is in the order of what went in, whatever the number of processes.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cir_datasets.common.shared_stages import Shard
from cir_datasets.errors import MissingImagesError
from submissions.errors import EncoderError

if TYPE_CHECKING:
    from PIL.Image import Image

    from submissions.embeddings.pictures import Pictures

_BLANK_SIDE = 32
_LOOKS_EVERY = 1.0
"""Seconds between two looks of a worker whether its main process lives."""
_AHEAD_PER_WORKER = 2
_SHARED_MEMORY = "/dev/shm"
_ROOMY_BYTES = 1 << 30


class Batch(NamedTuple):
    """Images that the model takes at once: those at places `start` to `stop` - 1."""

    shard: Shard
    start: int
    stop: int


class Opened(NamedTuple):
    """A batch that is ready for the model.

    Args:
        batch: which images.
        images: what the encoder's `prepare` made of them, or the images themselves where it has none.
        problems: by place, why a picture could not be opened; a black one stands for it.
    """

    batch: Batch
    images: Any
    problems: dict[int, str]


@dataclass(frozen=True)
class Opener:
    """Opens the pictures of a batch and prepares them. Can be pickled, and holds no weights.

    Args:
        pictures: to open.
        prepare: of the encoder, or None where it takes images.
        blank: ids that are known to be missing, and are not opened.
    """

    pictures: Pictures
    prepare: Callable[[Sequence[Image]], Any] | None
    blank: frozenset[str]

    def __getitem__(self, batch: Batch) -> Opened:
        """Open a batch."""
        from PIL import Image

        images, problems = [], {}
        for place in range(batch.start, batch.stop):
            image = None
            if self.pictures.ids[place] in self.blank:
                problems[place] = "missing"
            else:
                try:
                    image = self.pictures.open(place)
                except MissingImagesError as error:
                    problems[place] = str(error)
            images.append(image or Image.new("RGB", (_BLANK_SIDE, _BLANK_SIDE)))
        return Opened(batch, images if self.prepare is None else self.prepare(images), problems)


def batches_of(shard: Shard, batch_size: int) -> Iterator[Batch]:
    """The batches of a shard; the last may be smaller.

    Example:
        >>> [(batch.start, batch.stop) for batch in batches_of(Shard(1, 100, 150), 32)]
        [(100, 132), (132, 150)]
    """
    for start in range(shard.start, shard.stop, batch_size):
        yield Batch(shard, start, min(start + batch_size, shard.stop))


def opened_batches(opener: Opener, batches: Iterable[Batch], workers: int) -> Generator[Opened, None, None]:
    """Batches, opened, in order.

    Args:
        opener: opens one.
        batches: which; taken a few ahead of what was yielded, after the worker processes have started.
        workers: number of processes; 0 opens in this one, and so does an installation without torch, whose
            data loader is used. Hold `killed_workers_explained` around what uses them.
    """
    if workers == 0 or importlib.util.find_spec("torch") is None:
        yield from (opener[batch] for batch in batches)
        return
    from torch.utils.data import DataLoader

    loader: Any = DataLoader(
        opener,  # type: ignore[arg-type]  # only asked for its items
        batch_size=None,
        sampler=batches,
        num_workers=workers,
        prefetch_factor=_AHEAD_PER_WORKER,
        worker_init_fn=functools.partial(_end_with, os.getpid()),
        collate_fn=None if _shared_memory_is_roomy() else _unchanged,
    )
    yield from loader


@contextmanager
def killed_workers_explained() -> Iterator[None]:
    """Say in our words that a worker process was killed; torch raises that wherever this process then is.

    Raises:
        EncoderError: one was.
    """
    try:
        yield
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise EncoderError(
            "a process that opens pictures was killed, perhaps for memory. Fix: lower batch_size or "
            "workers (0 opens pictures in the main process); finished shards are kept."
        ) from error


def _end_with(parent: int, worker: int) -> None:
    """End this worker soon after its main process is gone: torch's own would wait for a reader for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOKS_EVERY)
        os._exit(1)

    threading.Thread(target=watch, name=f"worker {worker} watches {parent}", daemon=True).start()


def _unchanged(opened: Any) -> Any:
    """Arrays as they are: they come through a pipe instead of shared memory."""
    return opened


def _shared_memory_is_roomy() -> bool:
    """Whether batches can lie in shared memory; containers often have 64 MiB of it, and crash beyond."""
    if sys.platform != "linux":
        return True
    try:
        return shutil.disk_usage(_SHARED_MEMORY).free >= _ROOMY_BYTES
    except OSError:
        return False
