"""Pages of an entry whose lists are not here, or whose benchmark cannot be read: they say so, and end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from inspected_entries import FILES, handed_in

from leaderboard.pages.addresses import page_at
from leaderboard.pages.site import UNREAD, Links, Site
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.store.submission import Submission

VAL = "b/shapes/val"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    server = Server.open(Settings(tmp_path / "home"))
    yield Site(server)
    server.close()


@pytest.fixture
def entries(site: Site) -> list[Submission]:
    files = (FILES["sum"], FILES["random"])
    return [handed_in(site.server, file.read_bytes(), file.name) for file in files]


def written(site: Site, path: str, **query: str) -> str:
    page = page_at(site, path, query)
    assert page.status == 200
    return site.written(page, Links(path))


def test_lists_that_are_not_here_are_said_and_no_page_looks_again(
    site: Site, entries: list[Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(site.server.lists), "of", lambda self, submission: None)
    site.server.compared.of(entries, None)
    ids = ",".join(each.id for each in entries)
    paths = [
        (f"e/{entries[0].id}", {}),
        (f"{VAL}/q/shapes_val_00000", {"e": ids}),
        ("compare", {"e": ids}),
        (VAL, {"tab": "aspects"}),
    ]
    for path, query in paths:
        html = written(site, path, **query)
        assert UNREAD[1:].replace("'", "&#39;") in html, path
        assert 'http-equiv="refresh"' not in html, path


def test_pages_stand_where_the_prepared_rows_are_damaged(
    site: Site, entries: list[Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cir_datasets.errors import DatasetError

    def damaged(_: str) -> None:
        raise DatasetError("the rows are damaged")

    monkeypatch.setattr("leaderboard.inspection.reports.prepared_benchmark", damaged)
    monkeypatch.setattr("leaderboard.pages.queries.prepared_benchmark", damaged)
    assert "What it beats" in written(site, f"e/{entries[0].id}")
    assert "There is nothing to draw yet" not in written(site, VAL, tab="aspects")
    page = page_at(site, f"{VAL}/q/shapes_val_00000", {})
    assert (page.status, "not prepared on this server" in page.values["words"]) == (404, True)
