"""Do the tests catch faults? Each of `faults.yaml` is laid into a copy of the packages; its test must fail.

    python tests/faults.py [WORD ...]

tries those whose file or test holds one of the words; without words all of them. A line each, and exit code 1
where a fault was not caught. What all tests import is imported once; each fault has a fork of that process.
"""

from __future__ import annotations

import importlib
import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

import yaml

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("cir_metrics", "cir_datasets", "submissions", "leaderboard", "tests", "conftest.py", "setup.cfg")
_SHARED = (
    *("hypothesis", "schemathesis.pytest.plugin", "xdist.plugin"),
    *("evaluate", "fastapi.testclient", "pandas", "scipy", "sqlalchemy", "typer"),
)
"""Plugins of pytest come first: one of them looks through all that is imported before it."""
_PASSED, _FAILED = 0, 1
_SECONDS = 300
"""Of processor time: a fault that loops for ever is none that a test catches."""


class Fault(TypedDict):
    """What stands once in a file, what is put in its place, and the test that must fail then."""

    file: str
    find: str
    put: str
    caught_by: str


def faults() -> list[Fault]:
    return yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def ended(tests: list[str], log: Path) -> int:
    """The exit code of pytest for these tests, run in a fork of this process."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        pytest = importlib.import_module("pytest")
        os._exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def caught(fault: Fault, log: Path) -> bool:
    """Whether the fault, laid into the tree of the working directory, fails its test."""
    path = Path(fault["file"])
    sound, times = path.read_text(encoding="utf-8"), path.stat()
    path.write_text(sound.replace(fault["find"], fault["put"]), encoding="utf-8")
    os.utime(path, (times.st_atime, times.st_mtime + 60))  # what is compiled of it is not it
    try:
        return ended([fault["caught_by"]], log) == _FAILED
    finally:
        path.write_text(sound, encoding="utf-8")
        os.utime(path, (times.st_atime, times.st_mtime))


def main() -> int:
    words = sys.argv[1:]
    chosen = [one for one in faults() if not words or any(w in one["file"] + one["caught_by"] for w in words)]
    with tempfile.TemporaryDirectory(prefix="cir-faults-") as folder:
        tree, log = Path(folder) / "tree", Path(folder) / "log"
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            tree.mkdir(exist_ok=True)
            copy(ROOT / name, tree / name)
        os.chdir(tree)
        sys.path.insert(0, str(tree))
        os.environ |= {"PYTHONPATH": str(tree), "CIR_TEST_HOME": str(Path(folder) / "home")}
        for module in ("pytest", *_SHARED):
            importlib.import_module(module)
        if ended([one["caught_by"] for one in chosen], log) != _PASSED:
            print(f"without a fault:\n{log.read_text()}")
            return 1
        sys.dont_write_bytecode = True
        missed = 0
        for fault in chosen:
            is_caught = caught(fault, log)
            missed += not is_caught
            print(f"{'caught' if is_caught else 'MISSED'}  {fault['file']}  {fault['put']}", flush=True)
            if not is_caught:
                print(log.read_text())
        return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
