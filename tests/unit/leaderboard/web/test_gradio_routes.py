"""Calls of the page /submit: its own functions on uploaded files, whatever a stranger writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient

from leaderboard.errors import UploadRefusedError
from leaderboard.web.gradio_routes import JOIN, UPLOAD, PageCalls


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "uploads/abc").mkdir(parents=True)
    (tmp_path / "uploads/abc/run.json").write_text("{}")
    (tmp_path / "secret.json").write_text("secret")
    (tmp_path / "uploads/abc/link.json").symlink_to(tmp_path / "secret.json")
    return tmp_path / "uploads"


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    """Two routes as Gradio has them, behind what is tested."""
    app = FastAPI()

    @app.post(UPLOAD)
    def upload() -> list[str]:
        return [str(folder / "abc/run.json")]

    @app.post(JOIN)
    async def join(request: Request) -> Any:
        return await request.json()

    app.add_middleware(Refusing, folder=folder)
    with TestClient(app) as opened:
        yield opened


class Refusing(PageCalls):
    """What is tested, with errors as the application around it answers them."""

    def __init__(self, app: Any, folder: Path) -> None:
        super().__init__(app, folder, {3: 2})

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        except UploadRefusedError as error:
            await JSONResponse({"code": error.code}, error.status)(scope, receive, send)


def test_an_upload_has_a_name_outside_and_a_path_inside(client: TestClient, folder: Path) -> None:
    (name,) = client.post(UPLOAD).json()
    assert name == "uploads/abc/run.json"
    file = {"path": name, "meta": {"_type": "gradio.FileData"}}
    call = {"data": ["shapes/val", file], "fn_index": 3, "session_hash": "s", "event_data": None}
    inside = client.post(JOIN, json=call).json()
    assert inside == call | {"data": ["shapes/val", {**file, "path": str(folder / "abc/run.json")}]}


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "uploads/../secret.json",
        "uploads/abc/link.json",
        "uploads/abc",
        "uploads//etc/passwd",
        "uploads/abc/gone.json",
        "uploads/a\0b",
        "http://127.0.0.1/a.json",
        None,
        7,
    ],
)
def test_no_other_file_is_named(client: TestClient, path: object) -> None:
    call = {"data": ["", {"path": path}], "fn_index": 3, "session_hash": "s"}
    answer = client.post(JOIN, json=call)
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown-upload")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]",
        json.dumps({"data": ["", ""], "fn_index": 4, "session_hash": "s"}).encode(),
        json.dumps({"data": ["", ""], "fn_index": True, "session_hash": "s"}).encode(),
        json.dumps({"data": ["", ""], "fn_index": [3], "session_hash": "s"}).encode(),
        json.dumps({"data": [""], "fn_index": 3, "session_hash": "s"}).encode(),
        json.dumps({"data": "ab", "fn_index": 3, "session_hash": "s"}).encode(),
        json.dumps({"data": ["", [1]], "fn_index": 3, "session_hash": "s"}).encode(),
        json.dumps({"data": ["", ""], "fn_index": 3}).encode(),
    ],
)
def test_a_call_that_the_page_does_not_send_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post(JOIN, content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad-request")
