"""The tests catch the seeded faults of `tests/faults.yaml`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml
from programs import run_program
from slowly import some

ROOT = Path(__file__).resolve().parents[2]
SOME = ("cir_metrics", "leaderboard")
FAULTS = yaml.safe_load((ROOT / "tests" / "faults.yaml").read_text(encoding="utf-8"))


def test_thirty_faults_lie_in_all_packages() -> None:
    assert len(FAULTS) == 30
    packages = {fault["file"].partition("/")[0] for fault in FAULTS}
    assert packages == {"cir_metrics", "cir_datasets", "submissions", "leaderboard"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault['file']}: {fault['put'][:30]}")
def test_a_fault_fits_the_code_and_names_its_test(fault: dict[str, str]) -> None:
    assert (ROOT / fault["file"]).read_text(encoding="utf-8").count(fault["find"]) == 1
    path, _, name = fault["caught_by"].partition("::")
    called = re.escape(name.rpartition(".")[2].partition("[")[0])
    assert re.search(rf"def {called}\(", (ROOT / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("package", some(sorted({fault["file"].partition("/")[0] for fault in FAULTS}), SOME))
def test_each_fault_of_a_package_is_caught_by_its_test(package: str) -> None:
    word = f"{package}/"
    command = [sys.executable, str(ROOT / "tests" / "faults.py"), word]
    done = run_program(command)
    tried = [fault for fault in FAULTS if word in fault["file"] + fault["caught_by"]]
    assert done.stdout.count("caught") == len(tried)
