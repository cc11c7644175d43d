"""Boards of an organiser, in the home of the leaderboard beside those of the package."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leaderboard import boards
from leaderboard.errors import BoardError

OWN: dict[str, Any] = {
    "id": "own/shapes",
    "title": "Own shapes",
    "short_title": "Own",
    "group": "Challenges",
    "order": 5,
    "benchmark": "shapes/val",
    "track": "open",
    "primary": "recall@5",
    "primary_label": "R@5",
    "columns": [{"metric": "recall@1", "label": "R@1"}],
    "description": "made up",
}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of a home's boards, which is in use."""
    found = tmp_path / "boards"
    found.mkdir()
    boards.use(tmp_path)
    yield found
    boards.use(None)


def write(path: Path, at: int = 0, **change: Any) -> None:
    path.write_text(json.dumps({**OWN, **change}), encoding="utf-8")
    os.utime(path, ns=(at, at))


def test_a_board_of_the_home_stands_among_the_others_as_soon_as_it_is_there(folder: Path) -> None:
    before = boards.ids()
    assert "own/shapes" not in before
    write(folder / "own.yaml")
    assert boards.ids() == ("own/shapes", *before)
    assert boards.board("own/shapes").title == "Own shapes"
    write(folder / "own.yaml", at=1, title="Another title")
    assert boards.board("own/shapes").title == "Another title"
    (folder / "own.yaml").unlink()
    assert boards.ids() == before


def test_a_wrong_board_stops_the_start_and_says_where(folder: Path) -> None:
    write(folder / "own.yaml", colour="red")
    with pytest.raises(BoardError, match=r"boards/own\.yaml: .*colour"):
        boards.use(folder.parent)
    write(folder / "own.yaml", id="shapes/val")
    with pytest.raises(BoardError, match=r"own\.yaml: there is another board 'shapes/val'"):
        boards.use(folder.parent)
    (folder / "own.yaml").write_bytes(b"\xff")
    with pytest.raises(BoardError, match="cannot be read"):
        boards.use(folder.parent)
    (folder / "own.yaml").unlink()


def test_a_board_that_becomes_wrong_changes_nothing_in_what_runs(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder / "own.yaml")
    before = boards.boards()
    write(folder / "own.yaml", at=1, colour="red")
    with caplog.at_level(logging.ERROR):
        assert boards.boards() == before
        assert boards.boards() == before
    (said,) = caplog.records
    assert "colour" in said.message


def test_without_a_choice_the_home_is_the_one_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_LEADERBOARD_HOME", str(tmp_path))
    boards.use(None)
    (tmp_path / "boards").mkdir()
    write(tmp_path / "boards" / "own.yaml")
    assert "own/shapes" in boards.ids()
