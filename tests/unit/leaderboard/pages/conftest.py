"""A leaderboard with a few shipped entries, and its pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from inspected_entries import all_entries

from leaderboard.pages.site import Site
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.store.submission import Submission


@pytest.fixture(scope="package")
def shown_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    opened = Server.open(Settings(tmp_path_factory.mktemp("home")))
    yield Site(opened)
    opened.close()


@pytest.fixture(scope="package")
def shown_entries(shown_site: Site) -> dict[str, Submission]:
    """By a short name entries whose lists are made."""
    found = all_entries(shown_site.server)
    for each in found.values():
        shown_site.server.lists.of(each)
    return found
