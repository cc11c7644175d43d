"""Long work: its progress on stderr, and many small jobs on several threads.

Progress is shown only to a person who has waited two seconds. Of the jobs few wait at a time; threads are
enough for pictures, since hashing and decoding let other threads run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeVar

from cir_datasets.common.terminal import visible
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE_SECONDS = 2.0

_shown = False
"""Whether a bar is on the screen: a terminal has room for one, so that what runs inside shows none."""


@contextmanager
def step_progress(
    label: str, total: int | None, unit: Literal["steps", "bytes"] = "steps"
) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with each number of steps, or of bytes, done.

    Args:
        label: what is being done.
        total: number of steps, or None where it is not known.
        unit: what a step is.
    """
    global _shown
    started, done = time.monotonic(), 0
    bar: Progress | None = None

    def advance(amount: int) -> None:
        global _shown
        nonlocal bar, done
        done += amount
        waited = bar is None and not _shown and time.monotonic() - started > PATIENCE_SECONDS
        if waited and sys.stderr.isatty():
            bar, _shown = _bar(unit), True
            bar.add_task(visible(label), total=total)
            bar.start()
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()
            _shown = False


def _bar(unit: Literal["steps", "bytes"]) -> Progress:
    from rich import progress as rich
    from rich.console import Console
    from rich.text import Text

    class StepRate(rich.ProgressColumn):
        """Steps a second, over the last half minute."""

        def render(self, task: rich.Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.0f}/s")

    columns: list[rich.ProgressColumn] = (
        [rich.DownloadColumn(), rich.TransferSpeedColumn()]
        if unit == "bytes"
        else [rich.MofNCompleteColumn(), StepRate()]
    )
    return rich.Progress(
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        *columns,
        rich.TimeElapsedColumn(),
        rich.TextColumn("left"),
        rich.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


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
