"""What happens to a submission's words when they are corrected, and who may read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web_worlds import opened_app
from written_pages import submission_html

from leaderboard import boards
from leaderboard.callers import EDIT_KEY
from leaderboard.identity.tokens import Tokens, digest
from leaderboard.life import act
from leaderboard.server import Server
from leaderboard.store import Happened, Store
from leaderboard.submission import Submission
from leaderboard.views import submission_view

BOARD = "shapes/val"


class Board:
    """A leaderboard with accounts, without its worker; what is asked of it is asked by Ada.

    Args:
        http: a client of it.
        server: what it serves from.
    """

    def __init__(self, http: Any, server: Server) -> None:
        self.server, self.store = server, server.store
        self.ada = {"Authorization": f"Bearer {Tokens(server.store).create('ada')}"}
        self.org = {"Authorization": f"Bearer {Tokens(server.store).create('org', 'organiser')}"}
        self.http = http

    def act(self, one: Submission, action: str, **said: Any) -> Any:
        return self.http.post(f"/api/v1/submissions/{one.id}/{action}", json=said, headers=self.ada)

    def read(self, one: Submission, **headers: str) -> Any:
        return self.http.get(f"/api/v1/submissions/{one.id}", headers=headers)


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    with opened_app(tmp_path, accounts="tokens") as found:
        yield Board(*found)


def entry(store: Store, name: str = "Ours", owner: str = "token:ada", **more: object) -> Submission:
    """An entry on the board, as the worker leaves it."""
    one, _ = store.receive(
        board=BOARD, sha256=name.encode().hex().zfill(64), size=1, file_name="a.json", owner=owner
    )
    signatures = {term: {"text": "s", "key": "k"} for term in boards.board(BOARD).primary_terms}
    report = {"method": name, "file": "a.json", "metrics": {"recall@10": 0.5}, "signatures": signatures}
    happened = [("validated", {}), ("scored", {"report": report}), ("published", {})]
    return store.append(one, happened, method={"name": name, **more})  # type: ignore[arg-type]


def test_a_renamed_entry_has_one_name_everywhere(store: Store) -> None:
    one = entry(store)
    renamed = act(store, one, "correct", "owner", method={"name": "Theirs"})
    assert (renamed.scores or {})["method"] == "Theirs"
    assert "Ours" not in str(submission_view(renamed)["scores"])


def test_null_removes_a_field_and_no_name(board: Board) -> None:
    one = entry(board.store, paper="https://example.org/a", zero_shot=True, trained_on=["cc3m"], notes="n")
    words = {"paper": None, "zero_shot": None, "trained_on": None, "backbone": "mine"}
    done = board.act(one, "correct", method=words, submitter="Ada").json()
    assert done["method"] == {"name": "Ours", "notes": "n", "backbone": "other: mine"}
    assert done["submitter"] == "Ada"
    assert board.act(one, "correct", method={"notes": ""}).json()["submitter"] == "Ada"
    assert board.act(one, "correct", submitter=None).json()["submitter"] == ""
    for said, message in (
        ({"method": {"name": None}}, "name is null"),
        ({"method": None}, "method is null"),
    ):
        refused = board.act(one, "correct", **said)
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "bad-metadata")
        assert message in refused.json()["error"]["message"]
    after = board.read(one, **board.ada).json()
    assert after["method"] == {"name": "Ours", "backbone": "other: mine"}


@pytest.mark.parametrize(("publish", "status"), [(False, 404), (True, 200)])
def test_what_waits_for_a_private_check_is_its_owners(board: Board, publish: bool, status: int) -> None:
    key = "k" * 40
    said = {"board": BOARD, "sha256": "a" * 64, "size": 1, "file_name": "a.json", "publish": publish}
    one, _ = board.store.receive(**said, owner="link:1", edit_hash=digest(key))
    for happened in ("received", "validated", "scored"):
        assert one.state == happened
        assert board.read(one).status_code == status
        assert board.read(one, **board.ada).status_code == status
        for allowed in ({EDIT_KEY: key}, board.org):
            assert board.read(one, **allowed).json()["state"] == happened
        following: list[Happened] = [({"received": "validated"}.get(happened, "scored"), {"report": {}})]  # type: ignore[list-item]
        one = board.store.append(one, following) if happened != "scored" else one


def test_its_owner_sees_what_a_correction_changed(board: Board) -> None:
    one = entry(board.store, notes="<b>secret</b>")
    words = {"notes": "another", "zero_shot": False, "trained_on": ["cc3m", "coco"]}
    assert board.act(one, "correct", method=words, submitter="Ada").status_code == 200
    changes = {
        "notes": {"old": "<b>secret</b>", "new": "another"},
        "trained_on": {"old": None, "new": ["cc3m", "coco"]},
        "zero_shot": {"old": None, "new": False},
        "submitter": {"old": "", "new": "Ada"},
    }
    for whose in (board.ada, board.org):
        assert board.read(one, **whose).json()["events"][-1]["changes"] == changes
    public = board.read(one)
    assert public.json()["events"][-1]["fields"] == list(changes)
    assert public.json()["events"][-1]["changes"] is None
    assert "secret" not in public.text
    after = board.store.submission(one.id)
    assert after is not None
    pages = [submission_html(board.server, after, by) for by in ("owner", None)]
    assert "notes: &lt;b&gt;secret&lt;/b&gt; → another" in pages[0]
    assert "zero_shot: nothing → no" in pages[0]
    assert "trained_on: nothing → cc3m, coco" in pages[0]
    assert "secret" not in pages[1]
    assert "trained_on" in pages[1]
    erased = act(board.store, after, "erase", "organiser")
    assert "secret" not in submission_html(board.server, erased, "owner")
