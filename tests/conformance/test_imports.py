"""Imports point one way, and what should be cheap to import is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ["cir_metrics", "cir_datasets", "submissions", "leaderboard"]
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def imported_rooms(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.split(".")[0] for name in names} & set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_imports_from_a_room_above_it(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    # The `cir` command is assembled on the top floor, from the commands of every room.
    above = set(ROOMS[ROOMS.index(room) + 1 :])
    assert imported_rooms(path) & above == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_can_be_read_in_one_sitting(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= 450, f"{path.relative_to(ROOT)} has {lines} lines; one file, one idea"


@pytest.mark.parametrize(
    ("statement", "forbidden"),
    [
        ("import cir_metrics", ["evaluate", "datasets", "pyarrow", "pydantic", "orjson", "torch", "scipy"]),
        ("import cir_datasets", ["datasets", "numpy", "pyarrow", "pydantic", "torch", "evaluate", "yaml"]),
        ("import submissions", ["datasets", "numpy", "pyarrow", "pydantic", "torch", "evaluate", "orjson"]),
        (
            "import leaderboard.cli",
            ["datasets", "numpy", "pyarrow", "gradio", "fastapi", "sqlalchemy"],
        ),
    ],
)
def test_import_costs(statement: str, forbidden: list[str]) -> None:
    code = f"{statement}\nimport sys\nprint([m for m in {forbidden!r} if m in sys.modules])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
