"""The docs say what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def test_generated_pages_agree_with_the_code() -> None:
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_local_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_every_direct_dependency_is_explained_and_pinned() -> None:
    import configparser

    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["options"]["install_requires"].splitlines()
    for extra in setup["options.extras_require"].values():
        lines += extra.splitlines()
    names = {re.split(r"[\s<>=\[]", line.strip())[0] for line in lines if line.strip()} - {"cir-benchmarks"}
    explained = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower()
    assert {name for name in names if name not in explained} == set()
    assert {name for name in names if f"{name.lower()}==" not in pinned} == set()
