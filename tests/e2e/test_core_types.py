"""What is printed, stored or compared is the same on processors of another kind, byte for byte.

OpenBLAS takes the kernels of the processor that `OPENBLAS_CORETYPE` names, and numpy leaves out the
instructions that `NPY_DISABLE_CPU_FEATURES` names, so that this machine plays an older one. Two processes
render the golden reports and the golden comparison, score every entry with intervals, compare some of them,
and rank shapes by the methods without weights.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from programs import run_program

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

CHILD = """
import hashlib, json, sys
from pathlib import Path
import numpy as np

tests = Path(sys.argv[1])
sys.path[:0] = [str(tests / "fixtures"), str(tests / "golden")]
found = {}

def put(name, text):
    content = text if isinstance(text, bytes) else text.encode()
    found[name] = hashlib.sha256(content).hexdigest()

import test_compare_golden, test_reports_golden
for case in test_reports_golden.CASES:
    for format, text in test_reports_golden.rendered(case).items():
        put(f"report {case} {format}", text)
for format in test_compare_golden.ENDINGS:
    put(f"compare {format}", test_compare_golden.written(format))

import submissions
from submissions import entries
from submissions.scoring.intervals import intervals
from submissions.report import full_report
scored = {}
for entry in entries.entries():
    if len(scored.get(entry.benchmark, ())) == 4:
        continue
    report = submissions.score(entries.folder() / entry.file)
    ends = intervals(report, draws=200)
    put(f"entry {entry.file}", full_report(report, intervals=ends).render("json"))
    scored.setdefault(entry.benchmark, []).append(report)
for benchmark, reports in scored.items():
    put(f"compare {benchmark}", submissions.compare(reports, draws=200).text("json"))
for benchmark in scored:
    for method in ("image_only_pixels", "text_only_pixels", "image_text_sum_pixels", "random"):
        made = submissions.make_rank_file(benchmark, method)
        put(f"rank {benchmark} {method}", made.to_json())

random = np.random.default_rng(0)
put("kernel", (random.random((40, 999)) @ random.random((999, 40))).tobytes())
json.dump(found, sys.stdout)
"""


def under(core_type: str, disabled: str) -> dict[str, str]:
    """By name the hash of everything that a process makes under a core type."""
    environment = {
        **os.environ,
        "OPENBLAS_CORETYPE": core_type,
        "NPY_DISABLE_CPU_FEATURES": disabled,
        "PYTHONPATH": str(ROOT),
    }
    done = run_program([sys.executable, "-c", CHILD, str(ROOT / "tests")], env=environment, cwd=ROOT)
    return json.loads(done.stdout)


def test_haswell_and_skylake_x_write_the_same() -> None:
    built = np.show_config(mode="dicts")
    blas = built["Build Dependencies"]["blas"]["name"]
    if "openblas" not in blas:
        pytest.skip(f"numpy multiplies by {blas} here, whose kernels no variable chooses")
    flags = Path("/proc/cpuinfo")
    if not flags.exists() or " avx512f" not in flags.read_text(encoding="ascii", errors="replace"):
        pytest.skip("this processor has no AVX-512: it cannot play SkylakeX")
    here = under("SkylakeX", "")
    there = under("Haswell", " ".join(built["SIMD Extensions"]["found"]))
    kernels = here.pop("kernel"), there.pop("kernel")
    assert kernels[0] != kernels[1], "both multiply alike, so that this test could not fail"
    assert {name for name in here if here[name] != there[name]} == set()
    assert here.keys() == there.keys()
