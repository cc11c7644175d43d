"""perf/encoding.py runs and prints its ratio; how fast anything is is not asserted here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `retrieval`")

pytestmark = pytest.mark.slow


def test_encoding() -> None:
    script = Path(__file__).resolve().parents[2] / "perf" / "encoding.py"
    command = [
        sys.executable,
        str(script),
        "--model",
        "tiny",
        "--images",
        "100",
        "--repeat",
        "1",
        "--profile",
    ]
    done = subprocess.run(
        command, env={**os.environ, "CIR_DATA_HOME": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "100 pictures of shapes, tiny (clip, 24 dimensions, float32" in done.stdout
    parts = re.findall(r"^(\w+) +(-?\d+\.\d+) s +-?\d+\.\d %$", done.stdout, re.MULTILINE)
    assert [name for name, _ in parts] == ["forward", "encoder", "waiting", "writing", "around"]
    (wall,) = re.findall(r"^all +(\d+\.\d+) s +[\d,]+ images/s$", done.stdout, re.MULTILINE)
    assert abs(sum(float(seconds) for _, seconds in parts) - float(wall)) < 0.01
    assert "function calls" in done.stdout
    assert re.search(r"^forward / wall time +\d\.\d\d +>= 0\.85 +(?:yes|NO)$", done.stdout, re.MULTILINE)
