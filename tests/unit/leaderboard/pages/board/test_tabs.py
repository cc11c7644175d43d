"""Tabs of a board's page: the numbers of `cir score` by group, drawn and as tables, for chosen entries."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from leaderboard_world.entries import FILES, add_entry, all_entries
from read_pages import column, read, words

from leaderboard import boards
from leaderboard.pages.board import groups, tabs
from leaderboard.server import Server
from leaderboard.store.submission import Submission
from submissions import score
from submissions.report import full_report

VAL, SESSIONS, TALK = "b/shapes/val", "b/shapes/multiturn_val", "b/shapes/dialogue_val"


@pytest.fixture(scope="module")
def entries(host: Server) -> dict[str, Submission]:
    found = all_entries(host)
    for each in found.values():
        assert host.lists.of(each) is not None
    return found


def tables(page: Any) -> list[list[list[str]]]:
    """Of each table its rows, the head first, as texts."""
    return [
        [[words(cell) for cell in row.select("th, td")] for row in table.select("tr")]
        for table in page.select("table.numbers")
    ]


def test_aspects_are_those_of_the_score(host: Server, entries: dict[str, Submission]) -> None:
    page = read(host, VAL, tab="aspects")
    ((head, *rows),) = tables(page)
    assert head == ["aspect", "queries", "Image + text, sum (shapes encoder)", "Random", "random order"]
    both = [full_report(score(FILES[name])).groupings["by_aspect"] for name in ("sum", "random")]
    groups = [*both[0].groups, *both[0].means]
    assert [row[0] for row in rows] == [group.name for group in groups]
    for place, row in enumerate(rows):
        found = [[*each.groups, *each.means][place].values["recall@10"] for each in both]
        assert row[2:4] == [f"{100 * (value or 0):.2f}" for value in found]
        assert row[1] == str(groups[place].n)
    plot = page.select_one("svg.plot")
    assert plot.select_one("title").text == "R@10 by aspect"
    assert [words(each) for each in page.select(".tabs a")] == [
        *("Table", "Aspects", "Trend", "Queries", "About")
    ]
    assert words(page.select_one(".tabs [aria-current]")) == "Aspects"
    other = tables(read(host, VAL, tab="aspects", metric="map@10"))
    assert other[0][1][2] == f"{100 * (both[0].groups[0].values['map@10'] or 0):.2f}"


def test_turns_are_those_of_the_score_with_intervals(host: Server, entries: dict[str, Submission]) -> None:
    page = read(host, SESSIONS, tab="turns")
    hits, ranks, lengths = tables(page)
    groupings = full_report(score(FILES["tirg"])).groupings
    found = [f"{100 * (group.values['hits@10'] or 0):.2f}" for group in groupings["by_turn"].groups]
    assert [row[1].partition(" ")[0] for row in hits[1:]] == found
    assert all(row[1].endswith("]") for row in hits[1:])
    assert [row[2] for row in ranks[1:]] == [
        f"{group.values['mean_rank']:.2f}" for group in groupings["by_turn"].groups
    ]
    assert [row[:2] for row in lengths[1:]] == [
        [group.name, str(group.n)] for group in groupings["by_length"].groups
    ]
    assert page.select_one("svg.plot polygon") is not None
    rounds = read(host, TALK, tab="turns")
    assert [row[0] for row in tables(rounds)[0]] == ["round", "1", "2", "3", "4", "5"]
    assert len(tables(rounds)) == 1


def test_the_address_chooses_the_entries(host: Server, entries: dict[str, Submission]) -> None:
    page = read(host, VAL, tab="aspects", e=f"{entries['random'].id},nobody")
    assert tables(page)[0][0] == ["aspect", "queries", "Random", "random order"]
    assert words(page.select_one(".notice")) == "nobody is not an entry of this board and is left out."
    boxes = {box["value"]: box.has_attr("checked") for box in page.select(".picked input[type=checkbox]")}
    assert boxes == {entries["sum"].id: False, entries["random"].id: True}


def test_numbers_that_are_not_there_yet_are_named(
    host: Server, entries: dict[str, Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(host.numbers), "of", lambda self, submission: None)
    page = read(host, VAL, tab="aspects")
    said = words(page.select_one(".notice"))
    assert said.startswith("Image + text, sum (shapes encoder), Random: an earlier version scored it")
    assert tables(page) == []
    assert page.select_one("svg.plot") is None


def test_a_metric_that_is_not_reported_by_aspect_is_said(
    host: Server, entries: dict[str, Submission]
) -> None:
    said = words(read(host, VAL, tab="aspects", metric="nothing@1").select_one(".notice"))
    assert said.startswith("nothing@1 is not reported by aspect; R@10 is shown. There are: recall@10, ")


def test_a_tab_that_a_board_has_not_shows_its_table(host: Server, entries: dict[str, Submission]) -> None:
    for tab in ("turns", "nothing", ""):
        page = read(host, VAL, tab=tab)
        assert page.select_one(".standings") is not None
        notice = page.select_one(".notice")
        assert (notice is None) if not tab else f"no tab {tab} here; its table is shown" in words(notice)


@pytest.mark.parametrize(
    ("board", "known"),
    [
        ("shapes/val", ["", "aspects", "trend"]),
        ("cirr/val", ["", "aspects", "trend"]),
        ("fashioniq/val", ["", "aspects", "trend"]),
        ("circo/val", ["", "aspects", "trend"]),
        ("circo/dialogue_val", ["", "turns", "trend"]),
        ("circled", ["", "aspects", "trend"]),
        ("circled/cirr_val", ["", "turns", "trend"]),
    ],
)
def test_boards_have_the_tabs_that_fit(board: str, known: list[str]) -> None:
    assert list(tabs.tabs_of(boards.board(board))) == [*known, "about"]


def test_a_sealed_board_shows_no_numbers_by_query() -> None:
    sealed = boards.board("shapes/val").model_copy(update={"track": "sealed", "ground_truth": "/t"})
    assert list(tabs.tabs_of(sealed)) == ["", "trend", "about"]


def test_the_trend_has_entries_and_published_rows_of_the_same_split(host: Server) -> None:
    page = read(host, "b/fashioniq/val", tab="trend")
    ((head, *rows),) = tables(page)
    assert head == ["year", "method", "Mean of Avg R@10 and Avg R@50", "source"]
    assert ["2024", "DQU-CIR", "71.77"] in [row[:3] for row in rows]
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    by_method = {tuple(row[1:3]) for row in rows}
    assert by_method >= {("SPRC (retrained)", "62.135 m"), ("CaLa", "57.925 m"), ("CASE", "59.655 m")}
    told = {row[1:3] for row in map(tuple, rows)}
    board = read(host, "b/fashioniq/val")
    main = [re.sub(r"\s*m$", " m", text) for text in column(board, "main")]
    shown = zip(column(board, "name"), main, strict=True)
    assert told >= set(shown), "as the board shows them"
    assert "An m behind a number marks a mean" in words(page.select_one("main"))
    assert "SPRC (retrained), 2025: 62.135 (" in str(page.select_one("svg.plot"))
    assert words(page.select_one("svg.plot title")) == "Mean of Avg R@10 and Avg R@50 over the years"
    assert page.select_one(".picked") is None


def test_the_trend_names_published_rows_of_another_split(host: Server) -> None:
    page = read(host, "b/cirr/val", tab="trend")
    captions = [words(each) for each in page.select("main caption")]
    assert "Published results of the test split (cirr/test1), as reported" in captions
    assert page.select_one("svg.plot") is not None


def test_an_empty_trend_says_why(host: Server) -> None:
    page = read(host, "b/circled/cirr_val", tab="trend")
    assert "there is nothing to draw" in words(page.select_one(".notice"))
    assert page.select_one("svg.plot") is None


def test_entries_of_the_board_stand_at_their_day(server: Server) -> None:
    evil = "<script>alert(1)</script>"
    add_entry(server.store, 1, 0.9, name=evil)
    add_entry(server.store, 2, 0.5, baseline=True)
    ((head, *rows),) = tables(page := read(server, VAL, tab="trend"))
    assert head == ["published", "method", "R@10"]
    assert [row[:2] for row in rows] == [[time.strftime("%Y-%m-%d", time.gmtime()), evil]]
    assert page.select("main script") == []


def test_a_suites_members_stand_side_by_side() -> None:
    board = boards.board("fashioniq/val")
    metrics = {
        f"recall@{k}@{member}": value / k
        for member, value in zip(board.benchmarks, (1, 2, 3), strict=True)
        for k in (10, 50)
    }
    row = {"submission": "a", "method": {"name": "Ours"}, "metrics": metrics}
    shown = groups.members_of(board, [row])
    (table,) = shown["tables"]
    cells = [[cell.text for cell in line] for line in table["rows"]]
    assert cells == [
        [member, f"{value * 6:.2f}"] for member, value in zip(board.benchmarks, (1, 2, 3), strict=True)
    ]
    assert "Ours, fashioniq/toptee_val: 18.00" in shown["plot"]
    assert groups.members_of(board, [])["plot"] == ""


def test_no_more_methods_are_drawn_than_can_be_told_apart() -> None:
    rows = [
        {"submission": str(number), "block": "current", "is_oracle": False, "method": {}}
        for number in range(1, 10)
    ]
    chosen, remarks = tabs._chosen(rows, ",".join(str(number) for number in range(1, 10)))
    assert [row["submission"] for row in chosen] == list("1234567")
    assert remarks == ["The first 7 of 9 methods are shown."]
    assert len(tabs._chosen(rows, "")[0]) == 5
