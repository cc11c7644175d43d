"""What two people, or two workers, do at the same moment: a name has one owner, rankings stand once."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from leaderboard_world.entries import shipped

from leaderboard.errors import ConflictError, UploadRefusedError
from leaderboard.intake import Cover
from leaderboard.intake.life import act
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.store import Happened, Store
from leaderboard.store.database import upsert
from leaderboard.store.schema import board_states
from leaderboard.store.submission import Submission

BOARD = "shapes/val"
TRIES = 6
GOOD = shipped("random")
OTHER = shipped("image_only-pixels")


@pytest.fixture
def stores(url: str) -> Iterator[tuple[Store, Store]]:
    both = Store(url), Store(url)
    yield both
    for one in both:
        one.close()


@pytest.fixture
def servers(url: str, tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    both = tuple(Server.open(Settings(tmp_path / "home", database=url)) for _ in range(2))
    yield both[0], both[1]
    for one in both:
        one.close()


def at_once(*calls: Callable[[], Submission]) -> list[str]:
    """What calls from threads of their own that begin together lead to: states, or codes of refusals."""
    barrier = threading.Barrier(len(calls))

    def begun(call: Callable[[], Submission]) -> str:
        barrier.wait()
        try:
            return call().state
        except UploadRefusedError as refused:
            return refused.code
        except ConflictError:
            return "conflict"

    with ThreadPoolExecutor(len(calls)) as pool:
        return sorted(pool.map(begun, calls))


def judged(store: Store, number: int, owner: str, name: str, *, ends: str, canonical: str = "") -> Submission:
    submission, _ = store.receive(
        board=BOARD, sha256=f"{number:064x}", size=3, file_name="run.json", owner=owner
    )
    scored = [("validated", {}), ("scored", {"report": {}})]
    happened = [*scored, (ends, {})]
    columns = {"method": {"name": name}, "canonical": canonical or None}
    return store.append(submission, happened, **columns)  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["publish", "rename", "restore"])
def test_one_of_two_who_want_one_name_at_once_has_it(stores: tuple[Store, Store], what: str) -> None:
    for number in range(TRIES):
        name = f"method {number}"
        ends = "private" if what == "publish" else "published"
        mine = judged(stores[0], 2 * number, "ada", f"ada {number}" if what == "rename" else name, ends=ends)
        if what == "restore":
            mine = act(stores[0], mine, "hide", "organiser", reason="a question is open")
        yours = judged(
            stores[0],
            2 * number + 1,
            "ben",
            f"ben {number}" if what == "rename" else name.upper(),
            ends="published" if what == "rename" else "private",
        )
        action, by, method = {
            "publish": ("publish", "owner", None),
            "rename": ("correct", "owner", {"name": name}),
            "restore": ("restore", "organiser", None),
        }[what]
        first = partial(act, stores[0], mine, action, by, method=method)
        last = partial(act, stores[1], yours, "correct" if method else "publish", "owner", method=method)
        assert at_once(first, last) == ["name-taken", "published"]


def test_what_its_owner_has_sent_again_is_not_restored_beside_it(store: Store) -> None:
    stood = judged(store, 1, "ada", "first", ends="published", canonical="c")
    withdrawn = act(store, stood, "withdraw", "owner")
    again = judged(store, 2, "ada", "again", ends="published", canonical="c")
    with pytest.raises(UploadRefusedError, match=f"submission {again.id} of the same owner"):
        act(store, withdrawn, "restore", "organiser")
    act(store, again, "withdraw", "owner")
    assert act(store, withdrawn, "restore", "organiser").state == "published"


def test_two_workers_put_one_name_and_the_same_rankings_up_once(servers: tuple[Server, Server]) -> None:
    document = json.loads(OTHER)
    for number in range(2):
        document["method"]["name"] = f"method {number}"
        of_ada = [json.dumps(document, indent=indent).encode() for indent in (1, 2)]
        named = json.loads(GOOD)
        named["method"]["name"] = f"METHOD {number}"
        sent = [
            servers[0].intake.take(BOARD, [content], Cover(owner=owner))[0]
            for content, owner in [
                (of_ada[0], f"ada {number}"),
                (of_ada[1], f"ada {number}"),
                (json.dumps(named).encode(), f"ben {number}"),
            ]
        ]
        twins = at_once(
            lambda sent=sent: servers[0].worker.process(sent[0]),  # type: ignore[misc]
            lambda sent=sent: servers[1].worker.process(sent[1]),  # type: ignore[misc]
        )
        assert twins == ["published", "superseded"]
        assert servers[1].worker.process(sent[2]).state == "private"


def test_to_publish_is_not_lost_where_it_is_asked_while_a_submission_ends(
    stores: tuple[Store, Store],
) -> None:
    file = {"board": BOARD, "sha256": "a" * 64, "size": 3, "file_name": "run.json"}
    checked, _ = stores[0].receive(**file, publish=False)  # type: ignore[arg-type]
    with ThreadPoolExecutor(1) as pool:
        asked: list[Future[tuple[Submission, bool]]] = []

        def decided(connection: sa.Connection) -> list[Happened]:
            assert not stores[0].reread(connection, checked).publish
            asked.append(pool.submit(stores[1].receive, **file))  # type: ignore[arg-type]
            wait(asked, 0.3)
            return [("validated", {}), ("scored", {"report": {}}), ("private", {})]

        stores[0].append(checked, decided)
    again, new = asked[0].result()
    assert (again.id, again.state, new) == (checked.id, "private", False)  # which intake publishes


def test_a_read_sees_one_moment(stores: tuple[Store, Store]) -> None:
    reader, writer = stores
    submission = judged(writer, 1, "ada", "name", ends="private")
    with reader.database.read() as connection:
        before = reader.reread(connection, submission)
        act(writer, submission, "correct", "owner", method={"name": "another"})
        assert reader.reread(connection, submission) == before


def test_work_of_several_that_shares_a_transaction_fails_alone(stores: tuple[Store, Store]) -> None:
    database = stores[0].database
    tried: list[int] = []

    def work(number: int) -> int:
        def paused(connection: sa.Connection) -> int:
            tried.append(number)
            upsert(connection, board_states, {"board": f"b{number}", "changed": number})
            if number == 3:
                raise KeyError(number)
            return number

        return database.together(paused)

    with ThreadPoolExecutor(6) as pool:
        with database.write():
            sent = [pool.submit(work, number) for number in range(6)]
            time.sleep(0.2)  # on SQLite the six wait for the block to end
        errors = [type(one.exception()) for one in sent]
    assert errors == [KeyError if number == 3 else type(None) for number in range(6)]
    assert [one.result() for number, one in enumerate(sent) if number != 3] == [0, 1, 2, 4, 5]
    assert set(tried) == set(range(6))
    with database.read() as connection:
        there = set(connection.execute(sa.select(board_states.c.board)).scalars())
    assert there == {f"b{number}" for number in (0, 1, 2, 4, 5)}


def test_uploads_at_once_are_counted_and_recorded_each(url: str, tmp_path: Path) -> None:
    """Also those that are refused: for their address, and for what they are."""
    limits = {"accounts": "tokens", "uploads_an_hour": 6}
    with closing(Server.open(Settings(tmp_path / "home", database=url, **limits))) as server:

        def sent(number: int) -> str:
            try:
                content = [b"" if number == 0 else b"[%d]" % number]
                cover = Cover(owner=f"o{number}", address="192.0.2.1")
                return server.intake.take(BOARD, content, cover)[0].id
            except UploadRefusedError as refused:
                return refused.code

        before = datetime.now(UTC).hour
        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(sent, range(10)))
        if datetime.now(UTC).hour == before:
            assert answers.count("too-many") == 4
        taken = {one.id for one in server.store.of_board(BOARD)}
        assert taken == {one for one in answers if one not in ("too-many", "malformed")}
        assert set(server.files.names()) == {one.sha256 for one in server.store.of_board(BOARD)}
