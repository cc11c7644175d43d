"""`docs/adding_a_benchmark.md`: its files in a copy of the repository make a benchmark that works."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from programs import run_program

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adding_a_benchmark.md").read_text(encoding="utf-8")
FILES = re.findall(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", PAGE, flags=re.M | re.S)
BLOCKS = re.findall(
    r"^```(console|python)\n(.*?)^```$", PAGE.partition("## What you have now")[2], flags=re.M | re.S
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as a contributor has it after following the page."""
    root = tmp_path_factory.mktemp("adding") / "repository"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("cir_datasets", "cir_metrics", "submissions", "leaderboard", "tests"):
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    for name in ("conftest.py", "setup.cfg", "pyproject.toml"):
        shutil.copyfile(ROOT / name, root / name)
    for name, content in FILES:
        path = root / name
        assert not path.exists(), f"{name} is there already"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return root


def run(command: list[str], root: Path) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("CIR_", "HF_", "PYTEST"))
    }
    homes = {"CIR_CACHE_HOME": str(root.parent / "cache"), "HF_HOME": str(root.parent / "huggingface")}
    environment = {**kept, **homes, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(root)}
    return run_program(command, cwd=root, env=environment, code=None)


def test_the_page_shows_card_builder_dataset_card_and_fixture() -> None:
    assert [name for name, _ in FILES] == [
        "cir_datasets/cards/toy.yaml",
        "cir_datasets/sources/toy.json",
        "cir_datasets/builders/toy.py",
        "cir_datasets/cards/toy.md",
        "tests/fixtures/publishers/toy/queries.json",
        "tests/fixtures/publishers/toy/images.json",
    ]
    assert [kind for kind, _ in BLOCKS] == ["console", "python", "python", "console"]


@pytest.mark.slow
def test_what_the_page_shows_happens(copy: Path) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for kind, block in BLOCKS:
        parts = re.split(r"^\$ python (.*)$", block, flags=re.M) if kind == "console" else []
        for command, expected in zip(parts[1::2], parts[2::2], strict=True):
            done = run([sys.executable, *command.split()], copy)
            assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
            assert doctest.OutputChecker().check_output(expected.strip() + "\n", done.stdout, flags), (
                done.stdout
            )
    code = "\n".join(block for kind, block in BLOCKS if kind == "python")
    done = run([sys.executable, "-W", "ignore", "-c", code], copy)
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^# (.+)$", code, flags=re.M)
    assert doctest.OutputChecker().check_output("\n".join(shown) + "\n", done.stdout, flags), done.stdout


def test_the_new_code_is_clean(copy: Path) -> None:
    for tool in (["ruff", "check"], ["ruff", "format", "--check"]):
        done = run([sys.executable, "-m", *tool, "cir_datasets/builders/toy.py"], copy)
        assert done.returncode == 0, done.stdout + done.stderr
