"""The first page: the task, a line a board, what leads it, and what a board lacks."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import FastAPI
from fastapi.testclient import TestClient
from leaderboard_world.entries import BOARD, add_entry, server_with_board
from read_pages import html_of, read, words

import cir_datasets
from leaderboard import boards
from leaderboard.pages import pictures
from leaderboard.server import Server
from leaderboard.web import site_routes

EVIL = '"><script>alert(1)</script>'


def lines(server: Server) -> dict[str, list[str]]:
    """By board the cells of its line: task, metric, leader, entries, last change, state."""
    found = read(server, "").select(".boards tbody tr")
    return {row.a["href"].removeprefix("./b/"): [words(cell) for cell in row.select("td")] for row in found}


def test_the_example_is_a_query_of_the_benchmark() -> None:
    example = pictures.task_example()
    row = next(
        row for row in cir_datasets.load(example["benchmark"]).rows() if row["query_id"] == example["query"]
    )
    assert row["reference_image_id"] == example["reference"]["image"]
    assert row["relative_caption"] == example["caption"]
    assert row["target_image_id"] == example["target"]["image"]
    assert example["near_miss"]["image"] in row["negative_image_ids"]


def test_every_board_has_a_line_with_what_ranks(server: Server) -> None:
    found = lines(server)
    assert {*found} == {board.id for board in boards.boards()}
    assert found["cirr/val"][:3] == ["Single-turn", "Mean of R@5, Rs@1", ""], "another split leads nothing"
    assert found["fashioniq/val"][2] == "DQU-CIR 71.77 published"
    assert found["shapes/dialogue_val"][2:4] == ["", "0"]


def test_closed_boards_are_below_one_line(server: Server) -> None:
    page = read(server, "")
    (fold,) = page.select("main details")
    closed = {link["href"].removeprefix("./b/") for link in fold.select("th a")}
    assert closed == {board for board, cells in lines(server).items() if cells[-1] != "open"}
    assert words(fold.select_one("h2")) == f"{len(closed)} closed"
    assert not fold.has_attr("open")


def test_the_leader_is_named_with_how_many_share_its_group_and_the_last_day(server: Server) -> None:
    store = server.store
    for seed, strength in ((1, 0.9), (2, 0.89), (3, 0.1)):
        add_entry(store, seed, strength, name=f"method {seed}")
    rows = server.tables.refresh(boards.board(BOARD)).view["rows"]
    assert [row["group"] for row in rows] == [1, 1, 2]
    first = f"{rows[0]['method']['name']} {100 * rows[0]['main']:.2f} +1 not told apart"
    assert lines(server)[BOARD][2:5] == [first, "3", rows[0]["published_at"][:10]]
    assert next(iter(lines(server))) == BOARD, "boards with entries stand first"


def test_baselines_alone_lead_as_baselines(server: Server) -> None:
    add_entry(server.store, 1, 0.3, baseline=True, name="Random")
    server.tables.refresh(boards.board(BOARD))
    assert re.fullmatch(r"Random [0-9.]+ baseline", lines(server)[BOARD][2])


def test_what_a_board_lacks_is_said_in_words(server: Server) -> None:
    server.store.pause(BOARD, "we move house.")
    found = lines(server)
    assert "we move house" in found[BOARD][-1]
    assert "o data" in found["circled/cirr_val"][-1]


def test_what_strangers_wrote_stays_text(tmp_path: Path) -> None:
    """Of an entry's sender, and of a board's file."""
    words = {name: f"{mark}{EVIL}"[:30] for name, mark in (("short_title", "S"), ("group", "G"))}
    words |= {"title": f"T{EVIL}", "primary_label": f"L{EVIL}", "description": EVIL}
    with server_with_board(tmp_path / "home", "own", **words) as server:
        add_entry(server.store, 1, name=f"N{EVIL}")
        add_entry(server.store, 2, name=f"N{EVIL}", board="own")
        server.tables.refresh(boards.board(BOARD))
        html = html_of(server, "")
    assert "<script>alert" not in html
    for mark in "TGLN":
        assert f"{mark}&#34;&gt;&lt;script&gt;alert(1)" in html


def test_a_reader_who_has_the_page_gets_304(server: Server) -> None:
    app = FastAPI()
    app.include_router(site_routes.router(server))
    client = TestClient(app)
    first = client.get("/")
    again = client.get("/", headers={"If-None-Match": first.headers["etag"]})
    changed = client.get("/", headers={"If-None-Match": '"other"'})
    assert (first.status_code, again.status_code, changed.status_code) == (200, 304, 200)
    assert first.text.count("<h1>") == 1
