"""What the end-to-end tests share."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import postgres_server
import pytest

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
_FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


@pytest.fixture(scope="session")
def world() -> ModuleType:
    """The module `tests/fixtures/leaderboard_world.py`."""
    name = "leaderboard_world"
    spec = importlib.util.spec_from_file_location(name, _FIXTURES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


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
def site(world: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A served leaderboard with something on every page; tests do not change what stands on its boards."""
    with _filled_site(world, tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture(scope="session")
def site_on_postgres(
    world: ModuleType, postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """The same on PostgreSQL."""
    database = postgres_server.new_database(postgres)
    with _filled_site(world, tmp_path_factory.mktemp("site"), database) as found:
        yield found


@pytest.fixture(params=["site", pytest.param("site_on_postgres", marks=pytest.mark.slow)])
def each_site(request: pytest.FixtureRequest) -> Any:
    """One after the other, for tests of what a page reads from the database."""
    return request.getfixturevalue(request.param)


@contextlib.contextmanager
def _filled_site(world: ModuleType, folder: Path, database: str = "") -> Iterator[Any]:
    site_world = importlib.import_module("site_world")
    home, database = folder / "home", database or f"sqlite:///{folder / 'home/leaderboard.sqlite'}"
    alone = {
        "CIR_DATA_HOME": "",
        "CIR_CACHE_HOME": str(folder / "cache"),
        "CIR_LEADERBOARD_DATABASE": database,
    }
    site_world.fill(home, folder, database, **alone)
    with world.serving(home, **alone) as running:
        yield site_world.world_of(running)
