"""The scripts of perf/ run and print their ratios; how fast anything is is not asserted here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def run(script: str, *options: str) -> str:
    command = [sys.executable, str(ROOT / "perf" / script), *options]
    done = subprocess.run(
        command, env={**os.environ, "CIR_DATA_HOME": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ratios(output: str) -> list[str]:
    """What the lines that end in yes or NO are about."""
    return re.findall(r"^(.+?) +-?[\d.]+ +[<>]= [\d.]+ +(?:yes|NO)$", output, re.MULTILINE)


def test_zerosight() -> None:
    output = run("zerosight.py", "--queries", "300", "--images", "1200", "--repeat", "1", "--loops", "1")
    shown = ratios(output)
    # Where ranx is not installed the script says so.
    assert ("ranx / ours, mAP of parsed lists" in shown) != (
        "ranx: ranx is not installed, left out" in output
    )
    assert set(shown) - {"ranx / ours, mAP of parsed lists"} == {
        "loop / score",
        "loop / evaluate",
        "score / orjson",
        "evaluate / orjson",
        "pytrec_eval / ours, mAP of parsed lists",
        "Parquet / JSON",
        "peak memory of cir / size of the JSON",
        "peak memory of cir_parquet / size of the JSON",
    }


def test_start() -> None:
    assert ratios(run("start.py", "--repeat", "1", "--imports", "1")) == [
        "import cir_metrics above import numpy, ms",
        "import cir_metrics.evaluation above import numpy, ms",
        "verify / cir score",
        "cir score, s",
    ]


def test_ranks() -> None:
    output = run(
        *("ranks.py", "--queries", "150", "--gallery", "400", "--dimensions", "32"),
        *("--block", "100", "--repeat", "1", "--all"),
    )
    assert "same ranks in blocks of 64, 200, 512, 1000: yes" in output
    assert ratios(output) == ["ranks / bare product (medians)", "ranks / bare product (least values)"]


def test_search() -> None:
    output = run(
        *("search.py", "--queries", "120", "--gallery", "400", "--dimensions", "32"),
        *("--repeat", "1", "--loop-queries", "3", "--numpy-queries", "20"),
    )
    assert "same ranks by search and the loop in Python: yes" in output
    assert ratios(output) == [
        "search / bare product (medians)",
        "loop in Python / search (medians)",
    ]


def test_prepare() -> None:
    output = run("prepare.py", "--queries", "200", "--images", "900", "--repeat", "1")
    assert re.findall(r"^(\w+) +\d+\.\d+ +\d+ +\d+\.\d+", output, re.MULTILINE) == [
        "bound",
        "prepare",
        "command",
        "load",
        "score",
    ]
