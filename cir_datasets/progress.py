"""Progress on stderr, shown only to a person who has waited two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE_SECONDS = 2.0


@contextmanager
def byte_progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with each number of bytes done.

    Args:
        label: what is being fetched.
        total: size in bytes, or None where it is not known.
    """
    with _progress(label, total, unit="bytes") as advance:
        yield advance


@contextmanager
def step_progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with each number of steps done.

    Args:
        label: what is being done.
        total: number of steps.
    """
    with _progress(label, total, unit="steps") as advance:
        yield advance


@contextmanager
def _progress(label: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    started, done = time.monotonic(), 0
    bar: Progress | None = None

    def advance(amount: int) -> None:
        nonlocal bar, done
        done += amount
        if bar is None and sys.stderr.isatty() and time.monotonic() - started > PATIENCE_SECONDS:
            bar = _bar(unit)
            bar.add_task(label, total=total)
            bar.start()
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


def _bar(unit: str) -> Progress:
    from rich import progress as rich
    from rich.console import Console

    amount = rich.DownloadColumn() if unit == "bytes" else rich.MofNCompleteColumn()
    return rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        amount,
        rich.TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
