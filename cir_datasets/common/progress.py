"""Progress on stderr, shown only to a person who has waited two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from cir_datasets.common.terminal import visible

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
