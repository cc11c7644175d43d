"""Run tasks in fresh Pythons, in turn, show medians and bounds: what the scripts of this folder share.

A script has tasks: functions that import and prepare what they need, and return the function whose time is
taken. Each run is a process of its own, so that its peak memory (`VmHWM` of /proc/self/status, hence Linux
only) is its own too, and the tasks take turns, so that a busy minute of the machine hits all alike.

A script's `BOUNDS` says what is asked of its figures, at the size that it has without options. `Verdict`
prints each beside what was measured, and ends the script with exit code 1 where one is missed. For another
size there are other bounds: `--bound "score / orjson=5"`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

Task = Callable[[Path], Callable[[], Any]]


@dataclass(frozen=True)
class Measured:
    """Runs of one task: seconds, the highest peak of memory in MiB, and what the last one said."""

    seconds: list[float]
    peak_mib: float | None = None
    shown: dict[str, Any] = field(default_factory=dict)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def least(self) -> float:
        return min(self.seconds)


def environment(home: Path) -> dict[str, str]:
    """Caches below `home`, and no network."""
    return {
        **os.environ,
        "CIR_CACHE_HOME": str(home / "cache"),
        "HF_HOME": str(home / "hf"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(ROOT),
    }


def peak_mib() -> float:
    """Peak resident memory of this process since it began, in MiB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("no VmHWM in /proc/self/status: run this on Linux")


def answer(tasks: Mapping[str, Task], name: str, folder: Path) -> None:
    """Run one task in this process and print what came of it as JSON, on the last line."""
    run = tasks[name](folder)
    started = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - started
    shown = result if isinstance(result, dict) else {}
    print(json.dumps({"seconds": seconds, "peak_mib": peak_mib(), "shown": shown}))


def measured(
    script: str, names: Sequence[str], folder: Path, repeat: int, env: Mapping[str, str]
) -> dict[str, Measured]:
    """`repeat` runs of each task of a script, by turns."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(repeat):
        for name in names:
            command = [sys.executable, script, "--task", name, "--folder", str(folder)]
            done = subprocess.run(command, env=dict(env), capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{' '.join(command)}:\n{done.stderr}")
            found[name].append(json.loads(done.stdout.splitlines()[-1]))
    return {
        name: Measured(
            [run["seconds"] for run in runs], max(run["peak_mib"] for run in runs), runs[-1]["shown"]
        )
        for name, runs in found.items()
    }


def show(name: str, this: Measured) -> None:
    """One line: task, median and least seconds, peak memory."""
    peak = "" if this.peak_mib is None else f"{this.peak_mib:9.0f}"
    print(f"{name:24} {this.median:8.3f} {this.least:8.3f} {peak}", flush=True)


HEAD = f"{'task':24} {'median s':>8} {'least s':>8} {'peak MiB':>9}"


@dataclass(frozen=True)
class Bound:
    """What is asked of a figure.

    Args:
        limit: the bound itself.
        least: whether it is asked for at least; else at most.
    """

    limit: float
    least: bool = False

    def kept(self, value: float) -> bool:
        return value >= self.limit if self.least else value <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.least else '<='} {self.limit:.4g}"


def at_most(limit: float) -> Bound:
    return Bound(limit)


def at_least(limit: float) -> Bound:
    return Bound(limit, least=True)


class Verdict:
    """The figures of a script beside its bounds.

    Args:
        bounds: by figure what is asked of it.
        given: other limits, `FIGURE=NUMBER`.
    """

    def __init__(self, bounds: Mapping[str, Bound], given: Sequence[str] = ()) -> None:
        self._bounds = dict(bounds)
        self._missed: list[str] = []
        self._shown: set[str] = set()
        self._left_out: set[str] = set()
        for text in given:
            figure, _, limit = text.rpartition("=")
            if figure not in bounds:
                raise SystemExit(f"--bound {text}: there is no such figure. There are: {'; '.join(bounds)}.")
            self._bounds[figure] = Bound(float(limit), bounds[figure].least)

    def head(self) -> None:
        print(f"\n{'':66} {'':8}   {'asked':>12}  kept")

    def show(self, figure: str, value: float) -> None:
        """One line: a figure, what is asked of it, and whether that is kept."""
        bound = self._bounds[figure]
        self._shown.add(figure)
        if not bound.kept(value):
            self._missed.append(figure)
        print(f"{figure:66} {value:8.2f}   {bound!s:>12}  {'yes' if bound.kept(value) else 'NO'}", flush=True)

    def note(self, figure: str, value: float) -> None:
        """One line: a figure of which nothing is asked."""
        print(f"{figure:66} {value:8.2f}   {'-':>12}", flush=True)

    def end(self) -> None:
        """Exit with code 1 where a bound is missed, or a figure was neither measured nor left out."""
        unmeasured = [figure for figure in self._bounds if figure not in self._shown]
        for figure in unmeasured:
            print(f"{figure:66} {'-':>8}   {self._bounds[figure]!s:>12}  not measured")
        forgotten = [figure for figure in unmeasured if figure not in self._left_out]
        for said, figures in (("missed", self._missed), ("not measured", forgotten)):
            if figures:
                print(f"{said}: {'; '.join(figures)}", file=sys.stderr)
        if self._missed or forgotten:
            raise SystemExit(1)

    def leave_out(self, figure: str) -> None:
        """Do not ask for a figure: what it is measured with is not installed, which the script has said."""
        self._left_out.add(figure)

    def fail(self, what: str) -> None:
        """Note something else that must hold and does not."""
        self._missed.append(what)


def add_bound_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bound",
        action="append",
        default=[],
        metavar="FIGURE=NUMBER",
        help="another bound for a figure, under the name that is printed; may be given several times",
    )
