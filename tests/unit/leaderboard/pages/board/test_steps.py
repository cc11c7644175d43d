"""The commands that a board's page gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from leaderboard import boards
from leaderboard.pages.board.steps import _multiround


def test_settings_that_are_switches_are_options_as_the_command_has_them() -> None:
    board = boards.board("shapes/dialogue_val")
    assert board.dialogue is not None
    talk: Any = SimpleNamespace(
        user={"way": None}, settings={"keep_history": False, "say_why": True}, sessions=None
    )
    command = _multiround(board.model_copy(update={"dialogue": talk}), "talk.jsonl")
    assert command.endswith("--simulator oracle --no-keep-history --say-why --out talk.jsonl")
