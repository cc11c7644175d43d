"""What happens to a submission's words when they are corrected, and who may read them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from leaderboard_world import opened_app
from read_pages import submission_html

from cir_metrics.catalogue import Signature
from leaderboard import boards
from leaderboard.errors import UploadRefusedError
from leaderboard.identity import Tokens, digest
from leaderboard.intake.life import act
from leaderboard.server import Server
from leaderboard.server.callers import EDIT_KEY
from leaderboard.standings.views import submission_view
from leaderboard.store import Happened, Store
from leaderboard.store.submission import Submission

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
def board(new_database: Callable[[], str], tmp_path: Path) -> Iterator[Board]:
    with opened_app(tmp_path, accounts="tokens", database=new_database()) as found:
        yield Board(*found)


def entry(store: Store, name: str = "Ours", owner: str = "token:ada", **more: object) -> Submission:
    """An entry on the board, as the worker leaves it."""
    one, _ = store.receive(
        board=BOARD, sha256=name.encode().hex().zfill(64), size=1, file_name="a.json", owner=owner
    )
    signatures = {term: {"format": 3, "text": "s", "key": "k"} for term in boards.board(BOARD).primary_terms}
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


DRESS = "fashioniq/dress_val"
KEY = "k" * 40


def dress_entry(
    store: Store,
    held: int,
    *,
    claims: dict[str, str] | None = None,
    sha256: str = "d" * 64,
    **parts: Any,
) -> Submission:
    """An entry of a board that keeps the reference, which so many of its 2,017 lists hold."""
    one, _ = store.receive(
        board=DRESS,
        sha256=sha256,
        size=1,
        file_name="a.json",
        owner="token:ada",
        edit_hash=digest(KEY),
    )
    plain: dict[str, Any] = {
        "benchmark": DRESS,
        "benchmark_version": 1,
        "data_hash": "a",
        "gallery_hash": "c",
    }
    plain |= {"gallery_size": 3817, "reference": "kept", "n": 2017, "ties": "listed", "package_version": "1"}
    signatures = {}
    for metric in ("recall@10", "recall@50"):
        own = {"metric": metric, "variant": "default", "metric_version": 1, "reference_held": (held, 2017)}
        made = Signature(**{**plain, **own, **parts})
        signatures[metric] = {**made.to_dict(), "text": str(made)}
    report = {"method": "Ours", "metrics": dict.fromkeys(signatures, 0.5), "signatures": signatures}
    happened: list[Happened] = [("validated", {"claims": claims or {}}), ("scored", {"report": report})]
    return store.append(one, [*happened, ("published", {})], method={"name": "Ours", **(claims or {})})


def test_what_an_owner_declares_of_the_reference_is_signed(board: Board) -> None:
    one = dress_entry(board.store, 0)

    def declared(word: str | None) -> dict[str, Any]:
        path = f"/api/v1/submissions/{one.id}/correct"
        answer = board.http.post(path, json={"method": {"reference": word}}, headers={EDIT_KEY: KEY})
        assert answer.status_code == 200, answer.text
        (row,) = board.server.tables.refresh(boards.board(DRESS)).view["rows"]
        return {**row, "signatures": answer.json()["scores"]["signatures"]}

    removed = declared("removed")
    assert (removed["block"], removed["rank"]) == ("reference", None)
    assert removed["reference_evidence"]["declared"] == "removed"
    for signature in removed["signatures"].values():
        assert "|ref:removed|" in signature["key"]
        assert signature["text"] == str(Signature.from_dict(signature))
    kept = declared("kept")
    assert (
        kept["rank"],
        kept["reference_evidence"]["declared"],
        kept["reference_evidence"]["unverified"],
    ) == (
        1,
        "kept",
        False,
    )
    silent = declared(None)
    assert (
        silent["rank"],
        silent["reference_evidence"]["declared"],
        silent["reference_evidence"]["unverified"],
    ) == (
        1,
        "",
        True,
    )
    log = board.store.submission(one.id)
    assert [event.kind for event in log.events][-6:] == ["corrected", "rescored"] * 3
    # Whoever scores the file again knows what was declared since.
    assert act(
        board.store, log, "correct", "owner", method={"name": "Ours", "reference": "removed"}
    ).form_now == {"reference": "removed"}


@pytest.mark.parametrize(
    ("held", "word", "more", "code", "where", "fix"),
    [
        (40, "removed", {}, "reference-contradiction", "40 of 2,017 lists", "send a file that was ranked so"),
        (
            0,
            "kept",
            {"claims": {"reference": "removed"}},
            "against-file",
            '"removed"',
            "send a corrected file",
        ),
        (
            0,
            "removed",
            {"format": 2, "reference_held": None},
            "wrong-state",
            DRESS,
            "cir leaderboard rescore",
        ),
    ],
)
def test_what_the_lists_or_the_file_contradict_is_refused(
    store: Store, held: int, word: str, more: dict[str, Any], code: str, where: str, fix: str
) -> None:
    one = dress_entry(store, held, **more)
    with pytest.raises(UploadRefusedError) as caught:
        act(store, one, "correct", "owner", method={**(one.method or {}), "reference": word})
    assert (caught.value.code, caught.value.status) == (code, 409)
    assert where in caught.value.message
    assert fix in caught.value.fix
    assert store.submission(one.id) == one


def sent_again(board: Board, one: Submission, **fields: str) -> Any:
    """The answer to the file of an entry that its owner sends once more, with these words."""
    path = f"/api/v1/submissions?board={one.board}"
    return board.http.post(path, data=fields, files={"file": ("a.json", AGAIN)}, headers=board.ada)


AGAIN = b"the same bytes"


def checked_entry(board: Board, held: int = 0, **more: Any) -> Submission:
    """As `dress_entry` has it, of the bytes `AGAIN`, and private."""
    one = dress_entry(board.store, held, sha256=hashlib.sha256(AGAIN).hexdigest(), **more)
    return act(board.store, one, "unpublish", "owner")


@pytest.fixture
def any_data(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boards take files although their data is not here."""
    monkeypatch.setattr(board.server.intake, "_data_problem", lambda _: None)


@pytest.mark.usefixtures("any_data")
def test_a_file_sent_again_with_a_declaration_is_published_with_it(board: Board) -> None:
    one = checked_entry(board)
    answer = sent_again(board, one, publish="yes", reference="removed")
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert (said["id"], said["new"], said["state"]) == (one.id, False, "published")
    assert "declares that the reference was removed" in said["unchanged"]
    assert said["method"]["reference"] == "removed"
    assert all("|ref:removed|" in each["key"] for each in said["scores"]["signatures"].values())
    kinds = [event["kind"] for event in said["events"]]
    assert kinds[-3:] == ["corrected", "rescored", "published"]
    # Once more changes nothing, and a published one can be corrected in this way, too.
    assert len(sent_again(board, one, reference="removed").json()["events"]) == len(kinds)
    assert sent_again(board, one, reference="kept").json()["method"]["reference"] == "kept"


@pytest.mark.usefixtures("any_data")
@pytest.mark.parametrize(
    ("held", "claims", "code", "words"),
    [
        (40, {}, "reference-contradiction", "40 of 2,017 lists"),
        (0, {"reference": "kept"}, "against-file", 'says reference: "kept"'),
    ],
)
def test_a_file_sent_again_with_a_declaration_that_is_wrong_is_not_published(
    board: Board, held: int, claims: dict[str, str], code: str, words: str
) -> None:
    one = checked_entry(board, held, claims=claims)
    answer = sent_again(board, one, publish="yes", reference="removed")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (409, code)
    assert words in error["message"]
    assert board.store.submission(one.id) == one


@pytest.mark.usefixtures("any_data")
@pytest.mark.parametrize("state", ["received", "hidden"])
def test_a_declaration_beside_what_cannot_be_corrected_now_is_refused(board: Board, state: str) -> None:
    if state == "hidden":
        one = act(board.store, checked_entry(board), "hide", "organiser", reason="odd")
    else:
        sha256 = hashlib.sha256(AGAIN).hexdigest()
        one, _ = board.store.receive(
            board=DRESS, sha256=sha256, size=1, file_name="a.json", owner="token:ada", publish=False
        )
    answer = sent_again(board, one, reference="removed")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (409, "wrong-state")
    assert f"{one.id} is {state}" in error["message"]
    assert f"/api/submissions/{one.id}/correct" in error["fix"]
    assert board.store.submission(one.id) == one


def test_a_file_that_declares_the_reference_is_scored_again_by_its_own_word(store: Store) -> None:
    one = dress_entry(store, 0, claims={"reference": "kept"})
    words = {"name": "Ours", "reference": "removed"}
    assert "reference" not in act(store, one, "correct", "organiser", method=words).form_now


def test_the_owners_form_offers_what_can_be_declared(board: Board) -> None:
    html = submission_html(board.server, dress_entry(board.store, 0), "owner")
    assert '<select id="word-reference" name="reference" data-kind="text"' in html
    assert html.count('<option value="removed">') == 1
