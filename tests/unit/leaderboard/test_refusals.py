"""`refusals.yaml` and the code that refuses name the same cases and the same facts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import leaderboard
from cir_datasets.common.yaml import package_yaml
from leaderboard.intake.declaring import CODE

CASES = package_yaml("leaderboard", "refusals.yaml")
KEPT = {"resets_at", "board_offered"}
"""Facts that an answer has beside its texts."""


def facts_by_case() -> Iterator[tuple[str, set[str]]]:
    """Each call of `UploadRefusedError.of`: the cases that it may name, and the facts that it has."""
    for path in Path(leaderboard.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "UploadRefusedError.of":
                words = [each.value for each in ast.walk(node.args[0]) if isinstance(each, ast.Constant)]
                for case in [each for each in words if isinstance(each, str)] or [CODE]:
                    yield case, {str(each.arg) for each in node.keywords}


def test_every_case_is_raised_with_the_facts_that_its_texts_name() -> None:
    raised = dict(facts_by_case())
    assert raised.keys() == CASES.keys()
    for case, found in facts_by_case():
        texts = CASES[case]["message"] + CASES[case]["fix"]
        named = {field.partition(".")[0] for _, field, _, _ in Formatter().parse(texts) if field}
        assert named - KEPT == found - KEPT, case
        assert named <= found, case
