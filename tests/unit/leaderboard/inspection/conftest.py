"""A leaderboard with a few entries that are shipped, judged as any other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from inspected_entries import all_entries

from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.store.submission import Submission


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    opened = Server.open(Settings(tmp_path_factory.mktemp("home")))
    yield opened
    opened.close()


@pytest.fixture(scope="package")
def entries(server: Server) -> dict[str, Submission]:
    return all_entries(server)
