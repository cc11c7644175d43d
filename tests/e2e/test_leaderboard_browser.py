"""The pages in headless Chromium, served by a real server."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import leaderboard_world as world
import pytest
from leaderboard_world.entries import add_entry

from leaderboard import boards
from leaderboard.store import Store

pytestmark = pytest.mark.browser


def test_a_method_whose_name_is_markup_stands_on_no_board(server: Any) -> None:
    for name in ("<script>alert(1)</script>", "a\u202eb", "\x1b[31mred"):
        done = server.submitted(world.as_bytes(world.rank_file(5, name)))
        assert [finding["code"] for finding in done["findings"]] == ["bad-metadata"]


def test_boards_are_picked_by_address_and_by_link(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/?board=circo/val")
    page.wait_for_selector("h1:text('CIRCO')")
    assert "takes no submissions now" in page.inner_text(".notice")
    assert page.query_selector(".title .button") is None
    page.goto(f"{server.url}/b/cirr/val")
    page.wait_for_selector("h1:text('CIRR, validation')")
    facts = page.inner_text(".protocol")
    for words in ("mean of R@5 and Rs@1", "2,297", "removed", "10.11 %"):
        assert words in facts
    page.goto(f"{server.url}/?board=no/board")
    page.wait_for_selector("main:has-text('There is no board no/board here.')")


def test_rank_groups_have_a_column_that_says_what_they_are(page: Any, server: Any) -> None:
    for seed, hits in ((51, 0.95), (52, 0.94), (53, 0.05)):
        server.submitted(world.as_bytes(world.rank_file(seed, f"In a group {seed}", hits=hits)))
    groups = [row["group"] for row in server.rows()]
    assert len(set(groups) - {None}) > 1
    page.goto(f"{server.url}/?board=shapes/val")
    page.wait_for_selector(".standings th.place")
    assert page.inner_text("thead th.place") == "Group"
    shown = page.eval_on_selector_all(
        "tbody td.place", "cells => cells.map(cell => cell.innerText.split(/\\s/)[0])"
    )
    assert shown == ["" if group is None else str(group) for group in groups]
    opens = page.eval_on_selector_all(
        "tr.opens td.place", "cells => cells.map(cell => cell.innerText.split(/\\s/)[0])"
    )
    assert opens == [str(group) for group in sorted(set(groups) - {None})]
    edges = page.eval_on_selector_all(
        "tr.opens td.place", "cells => cells.map(cell => getComputedStyle(cell).boxShadow)"
    )
    assert len(set(edges)) == len(opens), "each has a colour of its own"
    assert "paired tests on the queries find no difference" in page.inner_text("main")


@pytest.mark.parametrize(
    "board",
    [
        "shapes/val",
        *(
            pytest.param(board, marks=pytest.mark.slow)
            for board in ("cirr/val", "circo/val", "fashioniq/val", "multiturn_fashioniq/dress_val")
        ),
    ],
)
def test_the_table_comes_first(
    page: Any, new_database: Callable[[], str], tmp_path: Path, board: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    database = new_database() or f"sqlite:///{home / 'leaderboard.sqlite'}"
    # Before a server is there, whose worker would look for their files.
    with contextlib.closing(Store(database)) as store:
        for seed in (901, 902):
            method = {"name": f"A method with a name of many words, {seed}", "backbone": "CLIP ViT-L/14"}
            terms = boards.board(board).primary_terms
            add_entry(store, seed, board=board, alike=terms, zero_shot=True, **method)
    with world.serving_here(home, **world.alone(tmp_path, database)) as server:
        for width, height, most in ((1280, 800, 420), (390, 844, 700)):
            page.set_viewport_size({"width": width, "height": height})
            page.goto(f"{server.url}/b/{board}")
            first = page.locator(".standings tbody tr").first
            assert first.bounding_box()["y"] <= most, width
            assert page.evaluate("document.documentElement.scrollWidth") <= width
