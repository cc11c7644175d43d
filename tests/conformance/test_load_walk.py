"""How many files of ours `load_dataset("cirr", "val")` runs through once the benchmark is prepared."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from datasets_publishers import write_cirr
from programs import run_program

ROOT = Path(__file__).resolve().parents[2]
MOST = 15
"""Files in which a function of ours runs, beside bodies of modules and classes; a reader reads these."""

PREPARE = """
import cir_datasets
from datasets import load_dataset
load_dataset("cirr", "val", data_dir={example!r}, verification_mode="no_checks")
"""
WALK = """
import json, sys
import cir_datasets
from datasets import load_dataset
seen = set()
def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_name != "<genexpr>":
        seen.add(code.co_filename)
sys.setprofile(note)
rows = load_dataset("cirr", "val", verification_mode="no_checks")["validation"]
sys.setprofile(None)
print(json.dumps({"rows": len(rows), "files": sorted(seen)}))
"""


def test_a_prepared_benchmark_is_loaded_through_few_files(tmp_path: Path) -> None:
    example = write_cirr(tmp_path / "data", "val")
    homes = {"CIR_CACHE_HOME": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "huggingface")}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **homes}
    environment.pop("CIR_DATA_HOME", None)

    def answer(program: str) -> str:
        call = [sys.executable, "-c", program]
        return run_program(call, cwd=tmp_path, env=environment).stdout

    answer(PREPARE.format(example=str(example)))
    walk = json.loads(answer(WALK))
    packages = ("cir_datasets", "cir_metrics")
    files = [name for name in walk["files"] if Path(name).is_relative_to(ROOT)]
    ours = [str(Path(name).relative_to(ROOT)) for name in files]
    ours = [name for name in ours if name.split("/")[0] in packages]
    print("\n".join(ours))
    assert walk["rows"] > 0
    assert "cir_datasets/prepared/__init__.py" in ours
    assert len(ours) <= MOST
