"""docs/explain.md: its Python runs, and its command prints what stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs_shell import ROOT, Shell

TEXT = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8").partition("\n## A row of a table\n")[0]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_the_example_is_explained_as_the_page_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CIR_DATA_HOME", "")
    (command,), (shown,) = blocks("sh"), blocks("text")
    known: dict[str, object] = {}
    making, reading = blocks("python")
    exec(making, known)
    assert Shell(tmp_path).run(command.strip()) == shown
    exec(reading, known)
    assert capsys.readouterr().out == "300 0.0 1.0\n"
