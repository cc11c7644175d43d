"""The API of a real server in a process of its own, over HTTP."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import leaderboard_world as world
import plain_http
import pytest

import submissions


@pytest.fixture(scope="module")
def server(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    # Caches of its own: what other tests have prepared would open boards that are closed here.
    folder = tmp_path_factory.mktemp("api")
    alone = world.alone(folder, new_database())
    with world.serving_here(folder / "home", CIR_LEADERBOARD_MAX_UPLOAD_MB="1", **alone) as running:
        yield running


@pytest.fixture(scope="module")
def good() -> dict[str, Any]:
    return world.rank_file(1, "First method", hits=0.5, zero_shot=True)


@pytest.mark.parametrize(
    "path",
    ["b/{}", "b/shapes/val/{}", "s/{}", "published/{}", "{}", "api/boards/{}", "api/boards/shapes/{}"]
    + [
        f"api/{version}submissions/{{}}{more}"
        for version in ("", "v1/")
        for more in ("", "/file", "/receipt")
    ],
)
def test_no_database_is_asked_for_what_it_cannot_hold(server: Any, path: str) -> None:
    for name in ("%00", "a%00b", "%0a", "%ff", "%ed%a0%80", "%f0%9f%98%80"):
        assert server.get("/" + path.format(name)).status_code == 404, name


def test_health_says_what_a_client_must_know(server: Any) -> None:
    answer = server.get("/health")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
    assert answer.json()["max_upload_bytes"] == 2**20


def test_a_rank_file_travels_to_the_board(server: Any, good: dict[str, Any]) -> None:
    content = world.as_bytes(good)
    answer = server.upload(content, form={"backbone": "ViT-B/32", "name": "not taken", "submitter": "Ada"})
    assert answer.status_code == 202
    assert answer.json()["new"] is True
    done = server.finished(answer.json()["id"])
    assert done["state"] == "published"
    assert [event["kind"] for event in done["events"]] == ["received", "validated", "scored", "published"]
    assert done["sha256"] == hashlib.sha256(content).hexdigest()
    assert done["method"] == {"name": "First method", "backbone": "CLIP ViT-B/32", "zero_shot": True}
    here = submissions.score(content, "shapes/val")
    assert done["scores"]["metrics"] == here.metrics
    assert done["scores"]["main"] == here.main
    row = next(row for row in server.rows() if row["submission"] == done["id"])
    assert row["metrics"] == here.metrics
    assert row["signature"] == str(here.signatures["recall@10"])
    assert row["submitter"] == "Ada"
    file = server.get(done["file"])
    assert file.content == content
    assert "attachment" in file.headers["content-disposition"]


def test_the_same_file_again_is_the_same_entry(server: Any, good: dict[str, Any]) -> None:
    first = server.submitted(world.as_bytes(good))
    before = len(server.rows())
    again = server.upload(world.as_bytes(good), form={"name": "Another name"})
    assert again.status_code == 200
    assert again.json()["new"] is False
    assert again.json()["id"] == first["id"]
    assert len(server.rows()) == before


def test_a_broken_file_gets_the_findings_of_the_command_line(server: Any, good: dict[str, Any]) -> None:
    content = world.as_bytes(world.broken(good))
    before = server.rows()
    done = server.submitted(content)
    report = submissions.validate(content, "shapes/val", name="run.json")
    assert done["state"] == "rejected"
    assert [finding["code"] for finding in done["findings"]] == ["duplicate-image"]
    assert done["findings"] == json.loads(json.dumps(report.to_dict()["findings"]))
    assert done["findings_text"] == report.text()
    assert done["scores"] is None
    assert server.rows() == before
    refused = server.get(f"/api/submissions/{done['id']}/file")
    assert refused.status_code == 404
    assert refused.json()["error"]["code"] == "not-published"


def test_the_form_fills_in_for_a_missing_method_block(server: Any, good: dict[str, Any]) -> None:
    nameless = {key: value for key, value in world.rank_file(7).items() if key != "method"}
    rejected = server.submitted(world.as_bytes(nameless))
    assert [finding["code"] for finding in rejected["findings"]] == ["bad-metadata"]
    done = server.submitted(world.as_bytes(nameless), form={"name": "From the form", "zero_shot": "no"})
    assert done["state"] == "published"
    assert done["id"] != rejected["id"]
    assert done["method"] == {"name": "From the form", "zero_shot": False}


def test_a_raw_body_is_a_file_too(server: Any) -> None:
    content = world.as_bytes(world.rank_file(8, "Raw"))
    path = f"{server.url}/api/submissions?board=shapes/val&publish=yes&file_name=../../raw.json&submitter=me"
    answer = plain_http.post(path, content=content, timeout=300)
    assert answer.status_code == 202
    assert answer.json()["file_name"] == "raw.json"
    assert server.finished(answer.json()["id"])["state"] == "published"


@pytest.mark.parametrize(
    ("board", "content", "form", "status", "code"),
    [
        ("shapes/vall", b"{}", {}, 404, "unknown-board"),
        ("<script>", b"{}", {}, 404, "unknown-board"),
        (None, b"{}", {}, 400, "missing-board"),
        ("shapes/val", b"", {}, 400, "malformed"),
        ("shapes/val", b"x" * (2**20 + 1), {}, 413, "too-large"),
        ("cirr/val", b"{}", {}, 409, "board-unavailable"),
        ("shapes/val", b"{}", {"zero_shot": "perhaps"}, 422, "bad-metadata"),
        ("shapes/val", b"{}", {"paper": "http://x.example"}, 422, "bad-metadata"),
        ("shapes/val", b"{}", {"code": "javascript:alert(1)"}, 422, "bad-metadata"),
        ("shapes/val", b"{}", {"name": "a\u202eb"}, 422, "bad-metadata"),
        ("shapes/val", b"{}", {"submitter": "x" * 81}, 422, "bad-metadata"),
    ],
)
def test_what_cannot_become_a_submission_is_refused(
    server: Any, board: str | None, content: bytes, form: dict[str, str], status: int, code: str
) -> None:
    waiting = server.get("/health").json()["waiting"]
    answer = server.upload(content, board=board, form=form)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["message"]
    assert error["fix"]
    assert server.get("/health").json()["waiting"] == waiting


def test_a_form_without_a_file_is_refused(server: Any) -> None:
    answer = plain_http.post(
        f"{server.url}/api/submissions?board=shapes/val", files={"other": ("a.json", b"{}")}, timeout=300
    )
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "missing-file"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api/submissions/doesnotexist", "unknown-submission"),
        ("/api/submissions/doesnotexist/file", "unknown-submission"),
        ("/api/boards/cirr/test1", "unknown-board"),
        ("/api/nothing", "not-found"),
    ],
)
def test_what_is_not_there_is_404_in_json(server: Any, path: str, code: str) -> None:
    answer = server.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == code


def test_a_board_without_data_is_shown_and_says_so(server: Any) -> None:
    listed = {board["id"]: board for board in server.get("/api/boards").json()["boards"]}
    assert "is not on this server" in listed["cirr/val"]["unavailable"]
    assert listed["shapes/val"]["unavailable"] is None
    assert server.get("/api/boards/cirr/val").json()["rows"] == []


def test_a_file_without_a_board_goes_to_the_one_that_it_names(server: Any) -> None:
    content = gzip.compress(world.as_bytes(world.rank_file(40, "To its own board")))
    sent = server.upload(content, board=None)
    assert sent.json()["receipt"]["board"] == "shapes/val"
    assert server.finished(sent.json()["id"])["state"] == "published"
    url = f"{server.url}/api/submissions"
    alone = plain_http.post(url, content=content, timeout=30)
    assert (alone.status_code, alone.json()["id"]) == (200, sent.json()["id"])
    empty = plain_http.post(url, content=b"", timeout=30)
    assert (empty.status_code, empty.json()["error"]["code"]) == (400, "malformed")
    for body in (b'{"0": [1, 2]}', bytes(2**19)):
        refused = plain_http.post(url, content=body, timeout=30)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "missing-board")
        assert "shapes/val, " in refused.json()["error"]["fix"]
    elsewhere = plain_http.post(url, content=b'{"benchmark": "cirr/test1"}', timeout=30)
    assert (elsewhere.status_code, elsewhere.json()["error"]["code"]) == (404, "unknown-board")


def test_a_file_on_a_wrong_board_is_offered_the_right_one(server: Any, good: dict[str, Any]) -> None:
    done = server.submitted(world.as_bytes(good), board="shapes/multiturn_val")
    assert (done["state"], done["board_offered"]) == ("rejected", "shapes/val")
    (finding,) = done["findings"]
    assert finding["code"] == "wrong-benchmark"
    assert finding["fix"].startswith("send it to the board shapes/val")
    assert "Fix: send it to the board shapes/val" in done["findings_text"]
    assert server.submitted(world.as_bytes(world.broken(good)))["board_offered"] is None
