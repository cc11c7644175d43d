"""Every test that docs/threat_model.md names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PAGE = (TESTS.parent / "docs" / "threat_model.md").read_text(encoding="utf-8")


def test_every_test_that_the_page_names_exists_and_every_defence_has_one() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)
    missing = []
    for file, name in named:
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        missing += [] if name in found else [f"{file}::{name}"]
    assert missing == []
    defended = PAGE.partition("\n## Not defended\n")[0]
    rows = re.findall(r"^- \*\*(.*?)(?=^- |^$|\Z)", defended, re.MULTILINE | re.DOTALL)
    assert [row for row in rows if "::" not in row] == []
    assert len(rows) > 30
