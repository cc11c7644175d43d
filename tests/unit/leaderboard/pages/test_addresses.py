"""An address and its page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from leaderboard import boards, settings
from leaderboard.pages.site import Page, missing_page
from leaderboard.server import Server
from leaderboard.web import site_routes

ODD = ["a/b", "a%2Fb", "ü", "..", "a?b#c", '"><b>']


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    server = Server.open(settings.read(tmp_path))
    app = FastAPI()
    app.include_router(site_routes.router(server))
    with TestClient(app, follow_redirects=False) as opened:
        yield opened
    server.close()


def test_home_and_boards_answer_and_what_is_not_there_is_said(client: TestClient) -> None:
    assert client.get("/").status_code == 200
    assert boards.board("shapes/val").title in client.get("/b/shapes/val").text
    unknown = client.get("/b/shapes/vale")
    assert unknown.status_code == 404
    assert 'Did you mean <a href="../../b/shapes/val">shapes/val</a>' in unknown.text
    # Words of strangers are cut, and nothing on the disk is named.
    endless = client.get(f"/b/{'x' * 5000}").text
    assert f"There is no board {'x' * 60}… here." in endless
    assert len(endless) < 4000
    of_a_query = client.get("/b/shapes/vale/q/1").text
    assert "There is no board shapes/vale here." in of_a_query
    assert client.get("/site/site.css").headers["cache-control"].endswith("immutable")
    assert client.get("/site/other.css").status_code == 404
    moved = client.get("/?board=shapes/val&entry=289f32ba7118").headers["location"]
    assert moved == "./b/shapes/val?entry=289f32ba7118#entry-289f32ba7118"


def test_a_slash_at_the_end_leads_to_the_page(client: TestClient) -> None:
    moved = client.get("/b/shapes/val/?q=one%20two")
    assert (moved.status_code, moved.headers["location"]) == (308, "../val?q=one%20two")
    assert client.get("/about/").headers["location"] == "../about"
    assert client.get("/submit/?board=cirr/val").headers["location"] == "../submit?board=cirr/val"
    assert client.get("/b/shapes/val//").status_code == 404


@pytest.mark.parametrize(
    "address",
    [
        "/published?method=a%00b%1b",
        "/published?benchmark=a%00b",
        "/b/a%00b",
        "/b/shapes/val?tab=a%00b&q=a%00&entry=a%00b",
        "/m/a%00b",
        "/b/shapes/val/q/a%00b?e=a%00b",
        "/e/a%00b",
        "/compare?e=a%00b",
    ],
)
def test_pages_repeat_no_control_character(client: TestClient, address: str) -> None:
    text = client.get(address).text
    assert not {*map(chr, (*range(9), 11, 12, *range(14, 32), *range(127, 160)))} & {*text}


def test_an_entry_that_is_not_there_is_answered_alike_and_not_linked_to(client: TestClient) -> None:
    missing = client.get("/e/nothing")
    assert missing.status_code == 404
    assert "It may have been withdrawn, or its owner keeps it private." in missing.text
    board = client.get("/b/shapes/val?entry=nothing").text
    assert "The entry nothing is not on this board." in board
    assert "/s/nothing" not in board


@pytest.mark.parametrize("name", ODD, ids=["slash", "percent", "umlaut", "dots", "query", "markup"])
def test_odd_ids_reach_their_page_whole(
    client: TestClient, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`GET` keeps the path as it was written: an id with a slash is one part, and links count its own."""

    def said(_site: object, query: dict[str, str], found: str) -> Page:
        return missing_page("T", f"[{found}][{query['e']}]")

    monkeypatch.setattr("leaderboard.pages.board.page.page", said)
    page = client.get(f"/b/{quote(name, safe='').replace('.', '%2E')}?e=1&e=2")
    text = page.text.replace("&lt;", "<").replace("&gt;", ">").replace("&#34;", '"')
    assert f"[{name}][1,2]" in text
    assert 'href="../site/site.css?v=' in text
