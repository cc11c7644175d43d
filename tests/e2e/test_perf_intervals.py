"""`perf/intervals.py` runs and prints a line a task; how fast they are is not tested."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "perf" / "intervals.py"


def test_intervals() -> None:
    options = ["--queries", "200", "--draws", "300", "--repeat", "1"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *options], capture_output=True, text=True, timeout=120, check=True
    )
    head, *lines = done.stdout.splitlines()
    assert head == "200 queries, 8 metrics, 300 draws, median of 1"
    shown = [re.fullmatch(r"(.+?) +\d+\.\d\d s +\d+\.\d\d x draws alone", line) for line in lines]
    assert [match and match[1] for match in shown] == [
        "draws alone",
        "intervals of means",
        "interval of one median",
        "tests of differences",
        "plain loop (a hundredth, times 100)",
    ]
