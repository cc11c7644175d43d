"""Calls of `cir play` that cannot be meant are refused before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from says import says
from typer.testing import CliRunner

from cir_metrics.errors import CallError
from leaderboard.cli import build


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--out", "human.json"), ("human.json", "NAME.jsonl or NAME.parquet")),
        (("--out", "."), ("--out .", "NAME.jsonl")),
        (("--port", "8000"), ("--port 8000", "add --web")),
        (("--web", "--pictures", "."), ("--pictures needs --encoder",)),
        (("--web", "--pictures", ".", "--encoder", "shapes", "--images", "."), ("neither", "--images")),
        ((), ("shows no colours", "add --web")),
        (("--web", "--k", "51"), ("k=51", "from 1 to 50")),
    ],
)
def test_calls_that_cannot_be_meant(
    arguments: tuple[str, ...], words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(build(), ["play", *arguments])
    assert isinstance(done.exception, CallError)
    says(str(done.exception), *words)
    assert list(tmp_path.iterdir()) == []
