"""Pages of an entry whose lists are not here, or whose benchmark cannot be read: they say so, and end."""

from __future__ import annotations

import pytest
from leaderboard_world.entries import FILES, handed_in
from read_pages import html_of

from leaderboard.pages.addresses import page_at
from leaderboard.pages.site import UNREAD, Site
from leaderboard.server import Server
from leaderboard.store.submission import Submission

VAL = "b/shapes/val"


@pytest.fixture
def entries(server: Server) -> list[Submission]:
    files = (FILES["sum"], FILES["random"])
    return [handed_in(server, file.read_bytes(), file.name) for file in files]


def test_lists_that_are_not_here_are_said_and_no_page_looks_again(
    server: Server, entries: list[Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(server.lists), "of", lambda self, submission: None)
    server.compared.of(entries, None)
    ids = ",".join(each.id for each in entries)
    paths = [
        (f"e/{entries[0].id}", {}),
        (f"{VAL}/q/shapes_val_00000", {"e": ids}),
        ("compare", {"e": ids}),
        (VAL, {"tab": "aspects"}),
    ]
    for path, query in paths:
        html = html_of(server, path, **query)
        assert UNREAD[1:].replace("'", "&#39;") in html, path
        assert 'http-equiv="refresh"' not in html, path


def test_pages_stand_where_the_prepared_rows_are_damaged(
    server: Server, entries: list[Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cir_datasets.errors import DatasetError

    def damaged(_: str) -> None:
        raise DatasetError("the rows are damaged")

    monkeypatch.setattr("leaderboard.inspection.reports.prepared_benchmark", damaged)
    monkeypatch.setattr("leaderboard.pages.queries.prepared_benchmark", damaged)
    assert "What it beats" in html_of(server, f"e/{entries[0].id}")
    assert "There is nothing to draw yet" not in html_of(server, VAL, tab="aspects")
    page = page_at(Site(server), f"{VAL}/q/shapes_val_00000", {})
    assert (page.status, "not prepared on this server" in page.values["words"]) == (404, True)
