"""Kept lists: what the files hold, found again, and shown only where everybody may see them."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from leaderboard_world.entries import FILES, Entries, handed_in

import cir_datasets
from cir_datasets import registry
from cir_datasets.rows.right import right_answers
from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.inspection import lists as module
from leaderboard.inspection.hits import LAST
from leaderboard.inspection.lists import KeptLists, Lists
from leaderboard.server import Server
from leaderboard.server.rescoring import rescore, switch
from leaderboard.store.schema import values
from submissions.validation import read


def test_lists_of_queries_are_those_of_the_file(demo: Server, entries: Entries) -> None:
    found = demo.lists.of(entries["sum"])
    file, benchmark = read(FILES["sum"]), cir_datasets.load("shapes/val")
    own = found.member("shapes/val")
    assert own.names == benchmark.query_ids
    for row in benchmark.rows():
        name = row["query_id"]
        listed, subset = file.rankings[name], file.subset_rankings[name]
        (shown,) = own.of(name)
        right = set(right_answers(row, benchmark.spec.metrics))
        assert shown.top == tuple(listed[:10])
        assert shown.rank == first(listed, right)
        assert shown.listed == len(listed)
        beside = own.subset(name)
        assert (beside.top, beside.rank) == (tuple(subset), first(subset, right))
    hits = [first(file.rankings[row["query_id"]], {row["target_image_id"]}) for row in benchmark.rows()]
    assert own.hits(10, LAST).tolist() == [rank is not None and rank <= 10 for rank in hits]


def first(listed: Sequence[str], right: set[str]) -> int | None:
    return next((place for place, image in enumerate(listed, start=1) if image in right), None)


def test_lists_of_sessions_are_those_of_each_turn(demo: Server, entries: Entries) -> None:
    found = demo.lists.of(entries["tirg"])
    file, benchmark = read(FILES["tirg"]), cir_datasets.load("shapes/multiturn_val")
    for row in benchmark.rows():
        shown = found.member().of(row["session_id"])
        turns = file.rankings[row["session_id"]]
        assert [each.top for each in shown] == [tuple(turn[:10]) for turn in turns]
        assert [each.rank for each in shown] == [
            first(turn[:10], {*row["ground_truth_ids"]}) for turn in turns
        ]
        assert found.member().subset(row["session_id"]) is None


def test_lists_of_a_dialogue_come_with_what_was_said(demo: Server, entries: Entries) -> None:
    from benchmark_world.dialogues import shapes_dialogue

    found = demo.lists.of(entries["talk"])
    own = found.member()
    sessions = shapes_dialogue(hits=0.3).sessions()
    assert own.names == list(sessions)
    for name, played in sessions.items():
        rounds = own.rounds(name)
        assert [each.caption for each in rounds] == [each.caption for each in played]
        assert [each.reference for each in rounds] == [each.reference for each in played]
        assert [each.rankings[0].rank for each in rounds] == [each.rank for each in played]
        assert [each.rankings[0].top for each in rounds] == [tuple(each.top[:10]) for each in played]


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: b"",
        lambda body: body[:-40],
        lambda body: _with(body, {"lists/0/starts": np.array([0, 300])}),
        lambda body: _with(body, {}, without="lists/"),
    ],
    ids=["empty", "cut", "other starts", "of an earlier version"],
)
def test_lists_that_cannot_be_read_are_none_until_the_file_is_scored_again(
    server: Server, damage: Callable[[bytes], bytes]
) -> None:
    one = handed_in(server, FILES["random"].read_bytes(), "run.json")
    whole = server.lists.of(one)
    assert whole is not None
    with server.store.database.write() as connection:
        body = connection.execute(sa.select(values.c.data)).scalar_one()
        connection.execute(values.update().values(data=damage(body)))
    assert Lists(server.store).of(one) is None
    board = boards.board(one.board)
    assert switch(server, board, list(rescore(server, board))) == 1
    again = server.lists.of(server.store.submission(one.id) or one)
    assert [again.member().of(name) for name in again.member().names] == [
        whole.member().of(name) for name in whole.member().names
    ]


def test_lists_of_other_data_are_not_shown(
    demo: Server, entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = module.last_prepared(registry.spec("shapes/val"))
    other = replace(prepared, meta={**prepared.meta, "data_hash": "1" * 64})
    monkeypatch.setattr(module, "last_prepared", lambda _: other)
    assert demo.lists.shown(entries["sum"])
    assert demo.lists.of(entries["sum"]) is None


def test_only_what_everybody_may_see_has_lists(
    demo: Server, entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = entries["sum"]
    assert demo.lists.shown(one)
    for event in ("withdrawn", "hidden", "private", "scored"):
        other = replace(one, events=(*one.events, replace(one.events[-1], kind=event)))
        assert other.state != "published"
        assert not demo.lists.shown(other)
        assert demo.lists.of(other) is None
    board = boards.board(one.board)
    sealed = board.model_copy(update={"track": "sealed", "ground_truth": "/truth.parquet"})
    monkeypatch.setattr(boards, "find", lambda name: sealed)
    assert demo.lists.of(one) is None


def test_names_that_are_not_there_are_said(demo: Server, entries: Entries) -> None:
    found = demo.lists.of(entries["sum"])
    with pytest.raises(UnknownNameError, match=r"no lists for 'cirr/val'. There are those for shapes/val."):
        found.member("cirr/val")
    with pytest.raises(KeyError):
        found.member().of("shapes_val_99999")
    assert "shapes_val_99999" not in found.member()


def test_nothing_but_arrays_is_read() -> None:
    written = io.BytesIO()
    np.savez(written, **{"lists/0/about": np.array([{"a": 1}], dtype=object)})
    assert KeptLists.read(written.getvalue()) is None


def _with(body: bytes, changed: dict[str, Any], without: str = "-") -> bytes:
    with np.load(io.BytesIO(body)) as arrays:
        others = {key: arrays[key] for key in arrays.files if not key.startswith(without)}
    written = io.BytesIO()
    np.savez(written, **others | changed)
    return written.getvalue()
