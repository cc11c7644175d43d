"""docs/cookbook.md: every command is one that `cir` reads, and the Python runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs_shell import ROOT, parsed

TEXT = (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8")
COMMANDS = sorted(
    {
        line
        for block in re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if line.startswith("cir ")
    }
)


def test_every_command_is_read() -> None:
    assert len(COMMANDS) > 15
    for command in COMMANDS:
        assert parsed(command) is not None, command


def test_scores_and_rankings_made_by_hand_are_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    scores, rankings = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    exec(scores, {})
    assert 0 <= float(capsys.readouterr().out) < 0.05
    exec(rankings, {})
    findings, recall = capsys.readouterr().out.split()
    assert findings == "()"
    assert 0 <= float(recall) < 0.05
