"""Whoever lacks an extra is told both ways to install it, in words that stand in one place."""

from __future__ import annotations

import ast
import configparser
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import run_program

from cir_datasets.errors import install_lines, missing_extra, upgrade_lines

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cir_metrics", "cir_datasets", "submissions", "leaderboard")
ONE_PLACE = ROOT / "cir_datasets/errors.py"

_setup = configparser.ConfigParser()
_setup.read(ROOT / "setup.cfg", encoding="utf-8")
EXTRAS = dict(_setup["options.extras_require"])
OF_WORKERS_ON_THIS_PROJECT = {"dev", "docs", "space"}
"""These bring tools, which no message of the suite asks for; a Space installs its needs before it starts."""

PLACES = {"missing_extra": 2, "install_lines": 0, "_needs": 2}
"""Functions that take an extra's name, the last of `submissions.encoders.extras`, and as which argument."""


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def extras_named() -> set[str]:
    """The constants that are given to the functions that say how to install an extra."""
    found = set()
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PLACES:
                given = node.args[PLACES[node.func.id]]
                if isinstance(given, ast.Constant):
                    found.add(str(given.value))
    return found


@pytest.mark.parametrize("extra", EXTRAS)
def test_both_lines_name_the_extra(extra: str) -> None:
    said = install_lines(extra)
    assert f'install -e ".[{extra}]" -c constraints.txt in your clone' in said
    assert f'install "cir-benchmarks[{extra}]" once it is on PyPI' in said
    assert said.index("in your clone") < said.index("on PyPI"), "what works today comes first"
    assert said in str(missing_extra("this", "that", extra))


def test_an_extra_of_a_feature_is_named_by_its_message_and_no_other_is() -> None:
    assert extras_named() == set(EXTRAS) - OF_WORKERS_ON_THIS_PROJECT


def test_no_message_writes_the_lines_itself() -> None:
    own = re.compile(r"cir-benchmarks\[|install (--upgrade )?.?cir-benchmarks|install -e \"?\.\[")
    assert [str(path) for path in sources() if path != ONE_PLACE and own.search(path.read_text())] == []


def test_the_lines_are_for_the_python_that_says_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert install_lines("server").startswith("pip install -e ")
    assert "or pip install --upgrade cir-benchmarks" in upgrade_lines()
    monkeypatch.setenv("PATH", "/nowhere")
    started = install_lines("server").partition(" install ")[0]
    done = run_program(["/bin/sh", "-c", f"{started} --version"])
    assert done.stdout.startswith("pip ")
