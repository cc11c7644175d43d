"""What tests of the leaderboard share: databases (SQLite, a real PostgreSQL), and places of a challenge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import challenge_world as world
import postgres_server
import pytest
from judge_here import judge_here

from leaderboard import boards
from leaderboard.challenge.material import Material, from_files
from leaderboard.store import Store


@pytest.fixture(scope="module", autouse=True)
def _judged_here() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        judge_here(patch)
        yield


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are judged in processes of their own, as on a server."""
    judge_here(monkeypatch, processes=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'board.sqlite'}"
    return postgres_server.new_database(request.getfixturevalue("postgres"))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store(url)
    yield opened
    opened.close()


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[world.Places]:
    found = world.places(tmp_path)
    found.use(monkeypatch)
    boards.use(found.home)
    yield found
    monkeypatch.undo()
    boards.use(None)


@pytest.fixture
def material(tmp_path: Path) -> Material:
    return from_files(*world.write_rows(tmp_path), None, "removed")
