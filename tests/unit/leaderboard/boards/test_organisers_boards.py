"""Boards of an organiser, in the home of the leaderboard beside those of the package."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.pages.status_page import problems
from leaderboard.server import Server
from leaderboard.settings import Settings

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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"colour": "red"}, "colour"),
        ({"id": "shapes/val"}, "there is another board 'shapes/val'"),
        ({"phases": [{"name": "a", "opens": "2026-01-01", "closes": "yesterday"}]}, "closes"),
    ],
)
def test_a_wrong_board_is_left_out_and_the_others_go_on(
    folder: Path, caplog: pytest.LogCaptureFixture, change: dict[str, Any], words: str
) -> None:
    before = boards.ids()
    write(folder / "good.yaml")
    write(folder / "bad.yaml", **{"id": "own/bad", **change})
    with caplog.at_level(logging.ERROR):
        boards.use(folder.parent)
    assert boards.ids() == ("own/shapes", *before)
    assert boards.wrong_files() == ("bad.yaml",)
    (said,) = caplog.records
    assert words in said.message
    assert "is left out" in said.message
    with pytest.raises(UnknownNameError, match=r"Wrong files in .*bad\.yaml"):
        boards.board("own/bad")


def test_a_server_starts_beside_a_wrong_board_and_says_so(folder: Path) -> None:
    (folder / "own.yaml").write_bytes(b"\xff")
    server = Server.open(Settings(folder.parent))
    health = server.health()
    server.close()
    assert health["wrong_boards"] == ["own.yaml"]
    assert "own.yaml is wrong" in problems(health)[-1]


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
