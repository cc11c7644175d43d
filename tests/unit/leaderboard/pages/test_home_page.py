"""The first page: the task, a card a board, what leads it, and what a board lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from full_boards import BOARD, add_entry

import cir_datasets
from leaderboard import boards
from leaderboard.pages import pictures
from leaderboard.pages.addresses import page_at
from leaderboard.pages.site import Links, Site
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.web import site_routes

EVIL = '"><script>alert(1)</script>'


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    server = Server.open(Settings(tmp_path / "home"))
    yield Site(server)
    server.close()


def cards(site: Site) -> dict[str, str]:
    """By board the text of its card."""
    html = site.written(page_at(site, "", {}), Links(""))
    found = re.findall(r'<li class="card">.*?</li>', html, re.DOTALL)
    by_board = {re.search(r'href="\./b/([^"]+)"', one): one for one in found}
    return {
        path[1]: re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", one)))
        for path, one in by_board.items()
        if path is not None
    }


def test_the_example_is_a_query_of_the_benchmark() -> None:
    example = pictures.task_example()
    row = next(
        row for row in cir_datasets.load(example["benchmark"]).rows() if row["query_id"] == example["query"]
    )
    assert row["reference_image_id"] == example["reference"]["image"]
    assert row["relative_caption"] == example["caption"]
    assert row["target_image_id"] == example["target"]["image"]
    assert example["near_miss"]["image"] in row["negative_image_ids"]


def test_every_board_has_a_card_with_what_ranks_and_something_to_see(site: Site) -> None:
    found = cards(site)
    assert list(found) == [board.id for board in boards.boards()]
    assert (
        "Ranked by Mean of R@5, Rs@1 , higher is better: 4,181 queries over 2,297 images" in found["cirr/val"]
    )
    of_test = "Published for another split, the test split (cirr/test1): TMCIR 83.46, as reported by"
    assert of_test in found["cirr/val"]
    assert "Best published: DQU-CIR 71.77 , as reported" in found["fashioniq/val"]
    assert "(mean of printed numbers)" in found["fashioniq/dress_val"]
    assert "no entry yet" in found["shapes/dialogue_val"]


def test_a_track_that_no_board_has_says_so(site: Site) -> None:
    html = site.written(page_at(site, "", {"track": "sealed"}), Links(""))
    assert "No board of this server is of that track." in html
    assert 'href="./#boards"' in html
    assert 'aria-label="Track"' not in site.written(page_at(site, "", {}), Links(""))


def test_the_leading_group_is_named_with_the_leaders_interval_and_the_last_day(site: Site) -> None:
    store = site.server.store
    for seed, strength in ((1, 0.9), (2, 0.89), (3, 0.1)):
        add_entry(store, seed, strength, name=f"method {seed}")
    table = site.server.tables.refresh(boards.board(BOARD))
    rows = table.view["rows"]
    assert [row["group"] for row in rows] == [1, 1, 2]
    said = cards(site)[BOARD]
    each = [
        f"{row['method']['name']} {100 * row['main']:.2f} "
        f"[{100 * row['interval'][0]:.2f}, {100 * row['interval'][1]:.2f}]"
        for row in rows[:2]
    ]
    assert f"Leading group by R@10: {each[0]}; {each[1]} 3 entries" in said
    assert f"3 entries, last on {rows[0]['published_at'][:10]}" in said
    assert "method 3" not in said


def test_baselines_alone_lead_as_baselines(site: Site) -> None:
    add_entry(site.server.store, 1, 0.3, baseline=True, name="Random")
    site.server.tables.refresh(boards.board(BOARD))
    assert "Best baseline by R@10: Random " in cards(site)[BOARD]


def test_what_a_board_lacks_is_said_in_words(site: Site) -> None:
    site.server.store.pause(BOARD, "we move house.")
    found = cards(site)
    assert "paused: we move house" in found[BOARD]
    assert "not open here: the publisher's files are missing" in found["circled/cirr_val"]


def test_what_strangers_wrote_stays_text(site: Site) -> None:
    """Of an entry's sender, and of a board's file."""
    board = boards.board(BOARD).model_copy(
        update={
            "id": "own",
            "title": f"T{EVIL}",
            "short_title": f"S{EVIL}"[:30],
            "group": f"G{EVIL}",
            "primary_label": f"L{EVIL}",
            "description": EVIL,
        }
    )
    folder = site.server.settings.home / "boards"
    folder.mkdir()
    (folder / "own.yaml").write_text(board.model_dump_json(), encoding="utf-8")
    add_entry(site.server.store, 1, name=f"N{EVIL}")
    add_entry(site.server.store, 2, name=f"N{EVIL}", board="own")
    boards.use(site.server.settings.home)
    site.server.tables.refresh(boards.board(BOARD))
    try:
        html = site.written(page_at(site, "", {}), Links(""))
    finally:
        boards.use(None)
    assert "<script>alert" not in html
    for mark in "TGLN":
        assert f"{mark}&#34;&gt;&lt;script&gt;alert(1)" in html


def test_a_reader_who_has_the_page_gets_304(site: Site) -> None:
    app = FastAPI()
    app.include_router(site_routes.router(site.server))
    client = TestClient(app)
    first = client.get("/")
    again = client.get("/", headers={"If-None-Match": first.headers["etag"]})
    changed = client.get("/", headers={"If-None-Match": '"other"'})
    assert (first.status_code, again.status_code, changed.status_code) == (200, 304, 200)
    assert first.text.count("<h1>") == 1
