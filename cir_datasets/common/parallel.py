"""Many small jobs on several threads, with few of them waiting at a time.

Threads are enough for pictures: hashing and decoding let other threads run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from cir_metrics.errors import CallError

Key = TypeVar("Key")
Job = TypeVar("Job")
Outcome = TypeVar("Outcome")

_WAITING_PER_WORKER = 8


def done_in_parallel(
    work: Callable[[Job], Outcome], jobs: Iterable[tuple[Key, Job]], workers: int | None
) -> Iterator[tuple[Key, Outcome]]:
    """Yield each job's key and outcome as soon as it is done, in no order.

    Args:
        work: what to do with a job; what it raises is raised here.
        jobs: keys and jobs; taken as they are needed.
        workers: number of threads; None is the number of processors.

    Raises:
        CallError: `workers` is below 1.

    Example:
        >>> sorted(done_in_parallel(len, [("a", "one"), ("b", "three")], workers=2))
        [('a', 3), ('b', 5)]
    """
    if workers is not None and workers < 1:
        raise CallError(f"workers={workers}; it is 1 or more.")
    threads = workers or os.cpu_count() or 1
    waiting: dict[Future[Outcome], Key] = {}
    pool = ThreadPoolExecutor(threads)
    try:
        for key, job in jobs:
            waiting[pool.submit(work, job)] = key
            if len(waiting) >= threads * _WAITING_PER_WORKER:
                yield from _finished(waiting)
        while waiting:
            yield from _finished(waiting)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _finished(waiting: dict[Future[Outcome], Key]) -> Iterator[tuple[Key, Outcome]]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        yield waiting.pop(future), future.result()
