"""A name that nobody reads is refused, with the names that there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from leaderboard_world import opened_app

from leaderboard.intake import method_from_form
from leaderboard.server import Server
from submissions.rank_file.model import Method

UPLOADS = ("/api/submissions", "/api/v1/submissions")
BOARD = "/api/v1/boards/shapes/val"
FILE = {"file": ("run.json", b"[1]", "application/json")}


@pytest.fixture(scope="module")
def server(
    new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, Server]]:
    with opened_app(tmp_path_factory.mktemp("names"), database=new_database()) as found:
        yield found


def refused(answer: Any, *words: str) -> None:
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (422, "unknown-name"), answer.text
    for word in words:
        assert word in error["message"] + error["fix"]


def test_a_misspelt_word_beside_an_upload_is_refused(server: tuple[Any, Server]) -> None:
    client, behind = server
    for path in UPLOADS:
        for query in ({"board": "shapes/val", "publsh": "true"}, {"utm_source": "mail"}):
            refused(client.post(path, params=query, content=b"[1]"), "query parameter", "board, submitter")
        misspelt = client.post(path, params={"publsh": "true"}, content=b"[1]")
        refused(misspelt, "'publsh'", "Did you mean 'publish'?")
        for name, near in (("publsh", "publish"), ("zeroshot", "zero_shot"), ("file_nam", "file")):
            form = client.post(path, params={"board": "shapes/val"}, data={name: "x"}, files=FILE)
            refused(form, f"form field {name!r}", f"Did you mean {near!r}?")
    assert behind.store.is_empty()
    assert list(behind.files.names()) == []


def test_reading_takes_the_parameters_that_it_has(server: tuple[Any, Server]) -> None:
    client, _ = server
    for path, known in (
        (f"{BOARD}?fromat=csv", "Did you mean 'format'?"),
        ("/api/boards/shapes/val?formatt=csv", "Did you mean 'format'?"),
        ("/api/v1/boards?board=shapes/val", "leave it out"),
        ("/api/boards?x=1", "leave it out"),
        ("/api/v1/entries?board=shapes/val&limits=3", "Did you mean 'limit'?"),
        ("/api/v1/feed.atom?bord=shapes/val", "Did you mean 'board'?"),
        ("/api/v1/submissions?board=shapes/val&state=hidden", "use one of board"),
        ("/api/v1/submissions/abc?full=1", "leave it out"),
        ("/api/v1/key?raw=1", "leave it out"),
        ("/health?deep=1", "leave it out"),
    ):
        refused(client.get(path), "query parameter", known)
        assert client.head(path).status_code == 422, path


def test_what_is_not_the_api_takes_any(server: tuple[Any, Server]) -> None:
    client, _ = server
    for path in ("/api", "/?board=shapes%2Fval", "/b/shapes/val", "/about"):
        mark = "&" if "?" in path else "?"
        assert client.get(f"{path}{mark}utm_source=mail&fbclid=1").status_code == 200
    assert client.get("/api/nothing?utm_source=mail").status_code == 404
    assert client.delete("/api/boards?utm_source=mail").status_code == 405


def test_a_body_has_the_fields_that_its_action_reads(server: tuple[Any, Server]) -> None:
    client, behind = server
    one, _ = behind.store.receive(board="shapes/val", sha256="a" * 64, size=1, file_name="a.json")
    behind.store.append(one, [("private", {})], method={"name": "Ours"})

    def act(action: str, **said: Any) -> Any:
        return client.post(f"/api/v1/submissions/{one.id}/{action}", json=said)

    refused(act("correct", submiter="Ada"), "'submiter'", "Did you mean 'submitter'?", "reason, method")
    refused(act("correct", method={"backbon": "mine"}), "field of a method", "Did you mean 'backbone'?")
    refused(act("publish", submitter="Ada"), "field of publish 'submitter'", "use one of reason")
    fixes = {"hide": "use one of reason, seen,", "send-on": "leave it out", "bundle": "leave it out"}
    for action, fix in fixes.items():
        answer = act(action, nonsense=1)
        refused(answer, "'nonsense'")
        assert answer.json()["error"]["fix"].startswith(fix)
    refused(client.post(f"/api/v1/submissions/{one.id}/hide?reason=x"), "query parameter 'reason'")
    malformed = client.post(f"/api/v1/submissions/{one.id}/hide", json=[1])
    assert malformed.json()["error"]["code"] == "bad-request"
    assert act("hide", reason="because", method=None).json()["state"] == "hidden"


def test_a_form_can_say_all_of_a_method() -> None:
    said = dict.fromkeys(Method.model_fields, "x") | {"paper": "https://a.org", "code": "https://a.org"}
    said |= {"zero_shot": "no", "skipped_images": "3", "own_gallery": f"7:{'a' * 64}", "reference": "kept"}
    found = method_from_form(said)
    # That lists were repaired only the file itself can say.
    assert set(found) == set(Method.model_fields) - {"repaired"}
    assert (found["search"], found["skipped_images"]) == ("x", 3)
