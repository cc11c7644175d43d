"""Tables are made when a board has changed, held in memory, and stand whatever their values are."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from leaderboard_world.entries import BOARD, METRIC, QUERIES, add_entry, packed, values_of

from leaderboard import boards
from leaderboard.standings.tables import Tables
from leaderboard.store import Store
from leaderboard.store.schema import views


@pytest.fixture
def tables(store: Store) -> Iterator[Tables]:
    made = Tables(store)
    yield made
    made.close()


def groups(tables: Tables) -> dict[str, int | None]:
    rows = tables.refresh(boards.board(BOARD)).view["rows"]
    return {row["method"]["name"]: row["group"] for row in rows}


def rows_of_views(store: Store) -> dict[str, Any]:
    with store.database.read() as connection:
        return {row.name: row for row in connection.execute(sa.select(views))}


def until_grouped(tables: Tables) -> dict[str, Any]:
    until = time.monotonic() + 300
    while time.monotonic() < until:
        view = tables.of(boards.board(BOARD)).view
        if not view["groups_pending"]:
            return view
        time.sleep(0.05)
    raise AssertionError("no groups after 30 s")


def test_a_table_is_made_once_and_anew_after_each_change(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = boards.board(BOARD)
    read = []
    published = Store.published
    monkeypatch.setattr(Store, "published", lambda self, name: read.append(name) or published(self, name))
    first = add_entry(store, 1, baseline=True)
    found = tables.refresh(board)
    assert [row["submission"] for row in found.view["rows"]] == [first.id]
    assert tables.of(board) is found
    assert len(read) == 2  # once for the groups, once for the table
    add_entry(store, 2, baseline=True)
    again = tables.refresh(board)
    assert len(again.view["rows"]) == 2
    assert again.body != found.body
    store.append(first, [("withdrawn", {})])
    assert [row["method"]["name"] for row in tables.refresh(board).view["rows"]] == ["Method 2"]
    assert len(read) == 6


def test_a_change_of_one_board_leaves_the_others(store: Store, tables: Tables) -> None:
    other = boards.board("cirr/val")
    before = tables.of(other)
    add_entry(store, 1)
    assert tables.of(other) is before


def test_pausing_a_board_shows(store: Store, tables: Tables) -> None:
    board = boards.board(BOARD)
    assert tables.of(board).view["paused"] is None
    store.pause(BOARD, "until Monday")
    assert tables.of(board).view["paused"] == "until Monday"
    store.pause(BOARD, None)
    assert tables.of(board).view["paused"] is None


def test_many_readers_at_once_make_a_table_once(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_refresh_later", lambda board: None)  # what it makes is another table
    add_entry(store, 1, baseline=True)
    read = []
    published = Store.published
    monkeypatch.setattr(Store, "published", lambda self, name: read.append(name) or published(self, name))
    start = threading.Barrier(8)
    found = []

    def reader() -> None:
        start.wait()
        found.append(tables.of(boards.board(BOARD)).body)

    readers = [threading.Thread(target=reader) for _ in range(8)]
    for each in readers:
        each.start()
    for each in readers:
        each.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert read == [BOARD]


def test_groups_come_in_the_background_and_stay(store: Store, tables: Tables) -> None:
    for seed, strength in enumerate((0.9, 0.5, 0.1), start=1):
        add_entry(store, seed, strength)
    add_entry(store, 9, 0.7, baseline=True)
    board = boards.board(BOARD)
    first = tables.of(board)
    assert first.view["groups_pending"] is True
    assert [row["group"] for row in first.view["rows"]] == [None] * 4
    view = until_grouped(tables)
    assert {row["method"]["name"]: row["group"] for row in view["rows"]} == {
        "Method 1": 1,
        "Method 9": None,
        "Method 2": 2,
        "Method 3": 3,
    }
    assert Tables(store).of(board).view == view


def test_only_new_pairs_are_tested(store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    from cir_metrics.significance import PairedTests

    for seed, strength in enumerate((0.9, 0.5, 0.1), start=1):
        add_entry(store, seed, strength)
    groups(tables)
    tested = []
    test = PairedTests.test
    monkeypatch.setattr(PairedTests, "test", lambda self, *pair: tested.append(pair[:2]) or test(self, *pair))
    add_entry(store, 4, 0.02)
    other = Tables(store)
    assert groups(other) == {"Method 1": 1, "Method 2": 2, "Method 3": 3, "Method 4": 4}
    assert tested == [(2, 3)]
    kept = json.loads(rows_of_views(store)[f"groups:{BOARD}"].body)
    assert len(kept["tests"]) == 3


def test_only_new_intervals_are_drawn(store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    from cir_metrics import resampling

    for seed in (1, 2):
        add_entry(store, seed)
    add_entry(store, 3, baseline=True)
    before = {row["submission"]: row["interval"] for row in tables.refresh(boards.board(BOARD)).view["rows"]}
    drawn = []
    bootstrap = resampling.bootstrap_means
    monkeypatch.setattr(
        resampling, "bootstrap_means", lambda values, **how: drawn.append(values) or bootstrap(values, **how)
    )
    new = add_entry(store, 4)
    rows = Tables(store).refresh(boards.board(BOARD)).view["rows"]
    assert [values.shape for values in drawn] == [(QUERIES, 1)]
    after = {row["submission"]: row["interval"] for row in rows}
    assert after.pop(new.id)
    assert after == before


@pytest.mark.parametrize(
    "damaged",
    [b"", b"[]", b'{"group": {}}', b"\x1f\x8bdamaged"],
    ids=["empty", "list", "half", "no JSON"],
)
def test_kept_groups_that_are_damaged_are_made_anew(store: Store, tables: Tables, damaged: bytes) -> None:
    add_entry(store, 1, 0.9)
    add_entry(store, 2, 0.2)
    board = boards.board(BOARD)
    whole = tables.refresh(board).view
    with store.database.write() as connection:
        kept = views.update().where(views.c.name == f"groups:{BOARD}")
        connection.execute(kept.values(body=damaged))
    assert Tables(store).of(board).view["groups_pending"]
    assert Tables(store).refresh(board).view == whole


def test_who_cannot_come_again_gets_groups_that_another_server_has_not_yet(store: Store) -> None:
    for seed, strength in enumerate((0.9, 0.1), start=1):
        add_entry(store, seed, strength)
    board = boards.board(BOARD)
    mirror = Tables(store, at_once=True)
    whole = mirror.of(board).view
    assert [row["group"] for row in whole["rows"]] == [1, 2]
    with store.database.write() as connection:
        connection.execute(views.delete())
    assert Tables(store).of(board).view["groups_pending"]
    assert mirror.of(board).view == whole


def test_the_values_of_another_benchmark_do_not_take_the_board_down(store: Store, tables: Tables) -> None:
    add_entry(store, 1, 0.9)
    add_entry(store, 2, 0.2)
    add_entry(store, 3, 0.5, queries=120)
    assert groups(tables) == {"Method 1": 1, "Method 3": None, "Method 2": 2}


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"PK\x03\x04 and then nothing",
        packed({"recall@1": values_of(0.5, 3)}),
        packed({METRIC: values_of(0.5, 3).reshape(10, 30)}),
        packed({METRIC: values_of(0.5, 3) * float("nan")}),
        packed({METRIC: values_of(0.5, 3).astype("U8")}),
        packed({METRIC: values_of(0.5, 3)[:0]}),
        packed({METRIC: values_of(0.5, 4)}),
    ],
    ids=["empty", "broken zip", "other metric", "matrix", "nan", "texts", "no query", "another mean"],
)
def test_values_that_are_not_an_entrys_own_give_it_no_group(
    store: Store, tables: Tables, kept: bytes
) -> None:
    add_entry(store, 1, 0.9)
    add_entry(store, 2, 0.2)
    add_entry(store, 3, 0.5, kept=kept)
    assert groups(tables) == {"Method 1": 1, "Method 3": None, "Method 2": 2}


def test_a_sealed_board_has_neither_groups_nor_intervals(store: Store, tables: Tables) -> None:
    add_entry(store, 1, 0.9)
    open_board = boards.board(BOARD)
    sealed = open_board.model_copy(update={"track": "sealed", "ground_truth": "/truth.parquet"})
    (row,) = tables.refresh(sealed).view["rows"]
    assert (row["group"], row["interval"]) == (None, None)
    (row,) = tables.refresh(open_board).view["rows"]
    assert row["group"] == 1
    assert row["interval"][0] < row["main"] < row["interval"][1]


def test_a_board_without_entries_has_no_groups_to_wait_for(tables: Tables) -> None:
    view = tables.of(boards.board(BOARD)).view
    assert (view["rows"], view["groups_pending"]) == ([], False)
