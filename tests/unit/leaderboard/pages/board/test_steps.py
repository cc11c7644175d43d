"""The commands that a board's page gives."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cir_datasets.common.options import read_config
from leaderboard import boards
from leaderboard.pages.board.steps import _multiround
from submissions.commands.multiround import MultiroundOptions


def test_rare_settings_stand_in_a_file_that_the_command_reads(tmp_path: Path) -> None:
    board = boards.board("shapes/dialogue_val")
    assert board.dialogue is not None
    settings = {"max_rounds": 3, "normalise": False, "history": "average", "aim": "best"}
    talk: Any = SimpleNamespace(user={"way": "pictures"}, settings=settings, sessions=None)
    write, play = _multiround(board.model_copy(update={"dialogue": talk}), "talk.jsonl")
    assert play.endswith("--simulator oracle --max-rounds 3 --config dialogue.yaml --out talk.jsonl")
    subprocess.run(["sh", "-c", write], cwd=tmp_path, check=True)
    read = read_config(MultiroundOptions, tmp_path / "dialogue.yaml")
    assert read == {"way": "pictures", "normalise": False, "aim": "best"}
