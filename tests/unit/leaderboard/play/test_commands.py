"""Calls of `cir play` that cannot be meant are refused before anything is loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from says import says
from typer.testing import CliRunner

from cir_metrics.errors import CallError
from leaderboard.cli import build


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--out", "human.json"), ("human.json", "NAME.jsonl or NAME.parquet")),
        (("--out", "."), ("--out .", "NAME.jsonl")),
        (("--pictures", "."), ("--pictures needs --encoder",)),
        (("--pictures", ".", "--encoder", "shapes", "--images", "."), ("neither", "--images")),
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


def test_a_person_plays_with_the_choices_of_the_method_that_a_simulated_user_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the page, which is not opened: the header of the journal holds what is played."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "leaderboard.play.commands._on_page", lambda port: lambda dialogue: dialogue.current()
    )
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number in range(3):
        Image.new("RGB", (8, 8), (80 * number, 0, 0)).save(pictures / f"{number}.png")
    mine = ("--pictures", "pictures", "--encoder", "shapes", "--limit", "2", "--k", "1")
    rule = ("--caption-rule", "comma", "--device", "cpu", "--no-normalise")
    done = CliRunner().invoke(build(), ["play", *mine, *rule])
    assert done.exit_code == 0, done.output
    header = json.loads(next(tmp_path.glob("human.jsonl.journal/*/make.json")).read_text())["settings"]
    assert header["settings"]["normalise"] is False
    assert header["method"]["caption_rule"] == "comma"
