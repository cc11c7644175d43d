"""What the end-to-end tests share."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import leaderboard_world as world
import postgres_server
import pytest
from leaderboard_world import site as sites

from leaderboard.identity import Tokens
from leaderboard.settings import Settings
from leaderboard.store import Store

_SECONDS = 300_000
"""Milliseconds for which a page is waited for: more than a busy machine takes, and no test waits in vain."""
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def server(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A leaderboard served by this process, in which nothing stands yet."""
    folder = tmp_path_factory.mktemp("served")
    with world.serving_here(folder / "home", **world.alone(folder, new_database())) as running:
        yield running


@pytest.fixture(scope="module")
def settings(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Of `server_with_accounts`."""
    home = tmp_path_factory.mktemp("accounts") / "home"
    home.mkdir()
    return Settings(home, database=new_database())


@pytest.fixture(scope="module")
def owners(settings: Settings) -> dict[str, dict[str, str]]:
    """By name the headers of who has a token there: Ada, of a lab, Bob, Cy, and an organiser."""
    with contextlib.closing(Store(settings.database_url)) as store:
        tokens = Tokens(store)
        secrets = {name: tokens.create(name) for name in ("ada", "bob", "cy")}
        secrets["org"] = tokens.create("org", "organiser")
        tokens.join("lab", "ada")
    return {name: {"Authorization": f"Bearer {secret}"} for name, secret in secrets.items()}


@pytest.fixture(scope="module")
def server_with_accounts(settings: Settings, owners: dict[str, dict[str, str]]) -> Iterator[Any]:
    alone = {"CIR_LEADERBOARD_DATABASE": settings.database, "CIR_DATA_HOME": ""}
    with world.serving_here(settings.home, CIR_LEADERBOARD_ACCOUNTS="tokens", **alone) as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of an empty database, once SQLite and once a real PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'board.sqlite'}"
        return
    why = postgres_server.missing()
    if why:
        pytest.skip(why)
    with postgres_server.serving() as address:
        yield f"{address}/postgres"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = os.environ.get("CIR_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if not found:
        pytest.skip("no Chromium is found; install Debian's chromium or set CIR_CHROMIUM to one")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=_ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of it, on which nothing may go wrong or speak up."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    opened.set_default_timeout(_SECONDS)
    opened.problems = []
    opened.on("dialog", lambda dialog: (opened.problems.append(dialog.message), dialog.dismiss()))
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    yield opened
    assert opened.problems == []
    context.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A served leaderboard with something on every page; tests do not change what stands on its boards."""
    with _filled_site(tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture(scope="session")
def site_on_postgres(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The same on PostgreSQL."""
    database = postgres_server.new_database(postgres)
    with _filled_site(tmp_path_factory.mktemp("site"), database) as found:
        yield found


@pytest.fixture(params=["site", pytest.param("site_on_postgres", marks=pytest.mark.slow)])
def each_site(request: pytest.FixtureRequest) -> Any:
    """One after the other, for tests of what a page reads from the database."""
    return request.getfixturevalue(request.param)


@contextlib.contextmanager
def _filled_site(folder: Path, database: str = "") -> Iterator[Any]:
    home, database = folder / "home", database or f"sqlite:///{folder / 'home/leaderboard.sqlite'}"
    alone = world.alone(folder, database)
    sites.fill(home, folder, database, **alone)
    with world.serving(home, **alone) as running:
        yield sites.world_of(running)
