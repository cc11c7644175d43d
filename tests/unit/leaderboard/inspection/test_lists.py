"""Kept lists: what the files hold, found again; made once, shown only where everybody may see them."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from inspected_entries import FILES
from judging_worlds import until

import cir_datasets
from cir_datasets.rows.right import right_answers
from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.inspection import lists as module
from leaderboard.inspection.hits import LAST
from leaderboard.inspection.lists import KeptLists, Lists
from leaderboard.queue.worker import Worker
from leaderboard.server import Server
from leaderboard.store.schema import views
from leaderboard.submission import Submission
from submissions.validation import read


def test_lists_of_queries_are_those_of_the_file(server: Server, entries: dict[str, Submission]) -> None:
    found = server.lists.make(entries["sum"])
    assert found is not None
    file, benchmark = read(FILES["sum"]), cir_datasets.load("shapes/val")
    own = found.member("shapes/val")
    assert own.names == benchmark.query_ids
    for row in benchmark.rows():
        name = row["query_id"]
        listed, subset = file.rankings[name], file.subset_rankings[name]
        (shown,) = found.of(name)
        right = set(right_answers(row, benchmark.spec.metrics))
        assert shown.top == tuple(listed[:10])
        assert shown.rank == first(listed, right)
        assert shown.listed == len(listed)
        beside = own.subset(name)
        assert beside is not None
        assert (beside.top, beside.rank) == (tuple(subset), first(subset, right))
        assert own.rounds(name) == ()
    hits = [first(file.rankings[row["query_id"]], {row["target_image_id"]}) for row in benchmark.rows()]
    assert own.hits(10, LAST).tolist() == [rank is not None and rank <= 10 for rank in hits]


def first(listed: Sequence[str], right: set[str]) -> int | None:
    return next((place for place, image in enumerate(listed, start=1) if image in right), None)


def test_lists_of_sessions_are_those_of_each_turn(server: Server, entries: dict[str, Submission]) -> None:
    found = server.lists.make(entries["tirg"])
    assert found is not None
    file, benchmark = read(FILES["tirg"]), cir_datasets.load("shapes/multiturn_val")
    for row in benchmark.rows():
        shown = found.of(row["session_id"])
        turns = file.rankings[row["session_id"]]
        assert [each.top for each in shown] == [tuple(turn[:10]) for turn in turns]
        assert [each.rank for each in shown] == [
            first(turn[:10], {*row["ground_truth_ids"]}) for turn in turns
        ]
        assert found.member().subset(row["session_id"]) is None


def test_lists_of_a_dialogue_come_with_what_was_said(server: Server, entries: dict[str, Submission]) -> None:
    from shapes_dialogues import shapes_dialogue

    found = server.lists.make(entries["talk"])
    assert found is not None
    own = found.member()
    sessions = shapes_dialogue(hits=0.3).sessions()
    assert own.names == list(sessions)
    for name, played in sessions.items():
        rounds = own.rounds(name)
        assert [each.caption for each in rounds] == [each.caption for each in played]
        assert [each.reference for each in rounds] == [each.reference for each in played]
        assert [each.ranking.rank for each in rounds] == [each.rank for each in played]
        assert [each.ranking.top for each in rounds] == [tuple(each.top[:10]) for each in played]


def test_a_reader_does_not_wait_and_lists_are_made_once(
    server: Server, entries: dict[str, Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    whole = module.made_lists
    monkeypatch.setattr(module, "made_lists", lambda *given: made.append(given) or whole(*given))
    fresh = Lists(server.store, server.files)
    _forget(server, entries["random"])
    assert fresh.of(entries["random"]) is None
    assert fresh.of(entries["random"]) is None
    until = time.monotonic() + 300
    while (found := fresh.of(entries["random"])) is None:
        assert time.monotonic() < until, "no lists after 30 s"
        time.sleep(0.05)
    assert len(made) == 1
    assert Lists(server.store, server.files).of(entries["random"]) is not None
    assert found.of("shapes_val_00000")[0].listed == 50
    assert len(made) == 1
    fresh.close()


@pytest.mark.parametrize(
    "damage",
    [lambda body: b"", lambda body: body[:-40], lambda body: _with(body, "0/starts", np.array([0, 300]))],
    ids=["empty", "cut", "other starts"],
)
def test_lists_that_are_damaged_are_made_anew(
    server: Server, entries: dict[str, Submission], damage: Any
) -> None:
    one = entries["random"]
    whole = server.lists.make(one)
    with server.store.database.write() as connection:
        mine = views.c.name == f"lists:{one.id}"
        body = connection.execute(sa.select(views.c.body).where(mine)).scalar_one()
        connection.execute(views.update().where(mine).values(body=damage(body)))
    again = Lists(server.store, server.files).make(one)
    assert whole is not None
    assert again is not None
    assert [again.of(name) for name in again.member().names] == [
        whole.of(name) for name in whole.member().names
    ]


def test_a_file_whose_lists_cannot_be_made_is_not_tried_over_and_over(
    server: Server, entries: dict[str, Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []
    monkeypatch.setattr(module, "made_lists", lambda *given: tried.append(given))
    one = entries["random"]
    _forget(server, one)
    fresh = Lists(server.store, server.files)
    assert fresh.make(one) is None
    assert fresh.of(one) is None
    assert len(tried) == 1
    fresh.close()
    monkeypatch.undo()
    assert Lists(server.store, server.files).make(one) is not None


@pytest.mark.usefixtures("processes")
def test_making_ends_when_it_is_told_to(server: Server, entries: dict[str, Submission]) -> None:
    one, stopped = entries["random"], threading.Event()
    _forget(server, one)
    stopped.set()
    fresh = Lists(server.store, server.files)
    assert fresh.make(one, stopped) is None
    assert fresh.make(one) is not None  # which was no failure of the file's


def test_a_file_that_is_gone_has_no_lists(
    server: Server, entries: dict[str, Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = replace(entries["random"], sha256="0" * 64, id="gone")
    fresh = Lists(server.store, server.files)
    assert fresh.make(one) is None
    monkeypatch.setattr(fresh, "make", lambda *given: pytest.fail("tried at once again"))
    assert fresh.of(one) is None
    fresh.close()


def test_only_what_everybody_may_see_has_lists(
    server: Server, entries: dict[str, Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = entries["sum"]
    assert server.lists.shown(one)
    for event in ("withdrawn", "hidden", "private", "scored"):
        other = replace(one, events=(*one.events, replace(one.events[-1], kind=event)))
        assert other.state != "published"
        assert not server.lists.shown(other)
        assert (server.lists.of(other), server.lists.make(other)) == (None, None)
    board = boards.board(one.board)
    sealed = board.model_copy(update={"track": "sealed", "ground_truth": "/truth.parquet"})
    monkeypatch.setattr(boards, "board", lambda name: sealed)
    assert (server.lists.of(one), server.lists.make(one)) == (None, None)


def test_the_worker_makes_them_when_it_has_judged(server: Server, entries: dict[str, Submission]) -> None:
    asked: list[str] = []
    worker = Worker(server.files, server.store, inspect=lambda one, _: asked.append(one))
    taken, _ = server.intake.take("shapes/val", [b"{}"], _cover())
    worker.start()
    until(lambda: asked == [taken.id], "the lists of what was judged")
    worker.stop()
    assert asked == [taken.id]
    server.lists.refresh(taken.id)  # a refused file has none
    _forget(server, entries["sum"])
    server.lists.refresh(entries["sum"].id)
    with server.store.database.read() as connection:
        mine = views.c.name == f"lists:{entries['sum'].id}"
        assert connection.execute(sa.select(views.c.etag).where(mine)).scalar() is not None


def test_a_worker_begins_with_entries_that_nobody_has_inspected(
    server: Server, entries: dict[str, Submission]
) -> None:
    missing = set(server.lists.missing())
    entry = next(iter(entries.values()))
    lists = server.lists.make(entry)
    assert lists is not None
    assert entry.id not in server.lists.missing()
    asked: list[str] = []
    worker = Worker(
        server.files, server.store, inspect=lambda one, _: asked.append(one), uninspected=lambda: ["a", "b"]
    )
    worker.start()
    until(lambda: asked == ["a", "b"], "both")
    worker.stop()
    assert asked == ["a", "b"]
    assert missing <= {one.id for one in entries.values()}


def test_names_that_are_not_there_are_said(server: Server, entries: dict[str, Submission]) -> None:
    found = server.lists.make(entries["sum"])
    assert found is not None
    with pytest.raises(UnknownNameError, match=r"no lists for 'cirr/val'. There are those for shapes/val."):
        found.member("cirr/val")
    with pytest.raises(KeyError):
        found.of("shapes_val_99999")
    assert "shapes_val_99999" not in found.member()


def test_nothing_but_arrays_is_read() -> None:
    written = io.BytesIO()
    np.savez(written, **{"0/about": np.array([{"a": 1}], dtype=object)})
    assert KeptLists.read(written.getvalue()) is None


def _cover() -> Any:
    from leaderboard.intake import Cover

    return Cover(file_name="run.json")


def _forget(server: Server, submission: Submission) -> None:
    with server.store.database.write() as connection:
        connection.execute(views.delete().where(views.c.name == f"lists:{submission.id}"))
    server.lists._held.pop(submission.id, None)


def _with(body: bytes, name: str, array: Any) -> bytes:
    with np.load(io.BytesIO(body)) as arrays:
        other = {key: arrays[key] for key in arrays.files} | {name: array}
    written = io.BytesIO()
    np.savez(written, **other)
    return written.getvalue()
