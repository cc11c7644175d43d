"""What tests of the leaderboard share: databases (SQLite, a real PostgreSQL), and places of a challenge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import postgres_server
import pytest
from leaderboard_world import challenges as world
from leaderboard_world.entries import Entries, all_entries
from leaderboard_world.judging import judge_here

from leaderboard import boards
from leaderboard.challenge.material import Material, from_files
from leaderboard.server import Server
from leaderboard.settings import Settings
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
def server(tmp_path: Path) -> Iterator[Server]:
    """An empty leaderboard of a test's own, in the folder `home`."""
    with closing(Server.open(Settings(tmp_path / "home"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A leaderboard of a module: its tests read, or add what the others do not count."""
    with closing(Server.open(Settings(tmp_path_factory.mktemp("home")))) as opened:
        yield opened


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The leaderboard of `entries`; tests add entries that none of the others counts."""
    with closing(Server.open(Settings(tmp_path_factory.mktemp("shown")))) as opened:
        yield opened


@pytest.fixture(scope="session")
def entries(demo: Server) -> Entries:
    """By a short name shipped files as entries whose lists are made."""
    with pytest.MonkeyPatch.context() as patch:
        judge_here(patch)
        entries = all_entries(demo)
    for entry in entries.values():
        assert demo.lists.of(entry) is not None
    return entries


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
