"""Gradio's own addresses in the Space: they take what the page uploaded, from whom, and nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from http_hub import TOKEN, Fault, Hub
from starlette.requests import Request
from starlette.testclient import TestClient
from waiting import wait_for

from leaderboard import settings
from leaderboard.server import Server
from leaderboard.space import shown
from leaderboard.store import hub_log
from leaderboard.store.hub_repository import Repository
from leaderboard.web.options import WebOptions

pytest.importorskip("gradio", reason="gradio is not installed: it is in the extra leaderboard")


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    from leaderboard.space.front import create_space

    for name, value in (
        ("SYSTEM", "spaces"),
        ("CIR_LEADERBOARD_ACCOUNTS", "tokens"),
        ("CIR_LEADERBOARD_UPLOADS_AN_HOUR", "3"),
        ("CIR_LEADERBOARD_MAX_UPLOAD_MB", "1"),
        ("GRADIO_TEMP_DIR", str(tmp_path / "uploaded")),
    ):
        monkeypatch.setenv(name, value)
    chosen = settings.read(tmp_path / "home")
    made = create_space(chosen, WebOptions(hosts=frozenset(["testserver"])), workers=0)
    with TestClient(made, client=("10.16.3.80", 1)) as client:
        yield client


def uploaded(space: TestClient, content: bytes, seen_from: str) -> Any:
    files = {"files": ("mine.json", content)}
    return space.post("/gradio_api/upload", files=files, headers={"X-Forwarded-For": seen_from})


def asked(space: TestClient, name: str, data: list[Any]) -> str:
    """Ask as the pages do; what they would show, or the status of a refusal."""
    known = space.get("/config").json()["dependencies"]
    index = next(each["id"] for each in known if each["api_name"] == name)
    body = {"data": data, "fn_index": index, "session_hash": "me"}
    joined = space.post("/gradio_api/queue/join", json=body)
    if joined.status_code != 200:
        return str(joined.status_code)
    with space.stream("GET", "/gradio_api/queue/data?session_hash=me") as lines:
        told = [json.loads(line[5:]) for line in lines.iter_lines() if line.startswith("data")]
    return json.dumps([one for one in told if one["msg"] in ("process_generating", "process_completed")])


def looked_at(space: TestClient, path: str, name: str = "_looked") -> str:
    file = {"path": path, "meta": {"_type": "gradio.FileData"}}
    return asked(space, name, [file, *(["", ""] if name == "_looked" else ["", "", "", False])])


def test_only_what_was_uploaded_is_read(space: TestClient, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    beside = tmp_path / "uploaded" / "x" / "secret.json"
    beside.parent.mkdir(parents=True)
    beside.write_text("{}")
    for path in ("/etc/passwd", "/dev/zero", "/proc/self/environ", "https://example.org/x", str(beside)):
        for name in ("_looked", "_sent"):
            assert looked_at(space, path, name) == "422"
    stray = tmp_path / "uploaded" / "tmp_broken_off"
    stray.touch()
    os.utime(stray, (0, 0))
    own = uploaded(space, b'{"not": "a rank file"}', "203.0.113.1").json()[0]
    assert "The file is not taken" in looked_at(space, own)
    assert not stray.exists()
    for path in (f"file={own}", "file=/etc/passwd", "file=https://example.org/", "proxy=x", "info"):
        assert space.get(f"/gradio_api/{path}").status_code == 404


def test_a_page_of_another_site_asks_nothing(space: TestClient) -> None:
    for method, path in (
        ("POST", "queue/join"),
        ("OPTIONS", "queue/join"),
        ("POST", "upload"),
        ("GET", "queue/data"),
    ):
        answer = space.request(method, f"/gradio_api/{path}", headers={"Origin": "https://evil.example"})
        assert (answer.status_code, "access-control-allow-origin" in answer.headers) == (403, False)
    assert space.get("/gradio_api/queue/data", headers={"Origin": "http://testserver"}).status_code != 403


def test_uploads_are_counted_by_the_address_that_the_proxy_saw_and_are_bounded(space: TestClient) -> None:
    forged = ("203.0.113.1", "198.51.100.9, 203.0.113.1", "198.51.100.8, 203.0.113.1, 10.1.2.3")
    assert [uploaded(space, b"{}", each).status_code for each in forged] == [200] * 3
    assert [uploaded(space, b"{}", each).status_code for each in forged] == [429] * 3
    assert uploaded(space, b"{}", "203.0.113.2").status_code == 200
    assert uploaded(space, b"x" * 2_000_000, "203.0.113.3").status_code == 413
    assert space.post("/gradio_api/queue/join", content=b"[" * 200_000).status_code == 413
    assert space.post("/gradio_api/queue/join", content=b"[" * 60_000).status_code == 422


def test_addresses_of_other_servers_lead_to_the_full_pages(space: TestClient) -> None:
    for path, status in (("/b/shapes/val?entry=x", 200), ("/s/none", 404), ("/full", 200)):
        answer = space.get(path, headers={"Accept": "text/html"})
        assert (answer.status_code, answer.url.path.startswith("/full/")) == (status, True)
        assert answer.url.query == b"entry=x" * ("?" in path)
    assert space.post("/submit", follow_redirects=False).headers["location"] == ".?view=submit"


def test_who_sends_a_file_is_answered_when_it_is_committed_where_that_is_asked(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leaderboard.space.pages import Pages

    monkeypatch.setattr(hub_log, "Repository", partial(Repository, endpoint=hub.url, token=TOKEN))
    monkeypatch.setattr(hub_log, "_TROUBLE_SECONDS", 0.1)
    (tmp_path / "mine.json").write_text("[1]")
    chosen = settings.Settings(tmp_path / "home", log="me/log", received="committed")
    server = Server.open(chosen, leads=True)
    with closing(server), ThreadPoolExecutor(1) as pool:
        request: Any = SimpleNamespace(
            request=Request({"type": "http", "headers": [], "client": ("203.0.113.1", 1)})
        )
        hub.faults["/commit/"] = Fault("status", 503)
        told = Pages(server)._sent(str(tmp_path / "mine.json"), "shapes/val", "", "", False, request)
        assert "Storing" in next(told)[0]
        one = server.store.unfinished()[0]
        answer = pool.submit(next, told)
        wait_for(lambda: server.log is not None and server.log._failing_since is not None, "a failure")
        assert (answer.done(), server.durability(one)) == (False, "journalled")
        hub.faults.clear()
        assert one.id in answer.result()[0]
        assert server.durability(one) == "committed"


def test_it_says_what_to_choose() -> None:
    site: Any = None  # none is asked
    assert "Choose a board" in shown.comparison(site, "", None, None)
    assert "one entry" in shown.comparison(site, "shapes/val", "abc", None)
    assert "Choose a board" in shown.query(site, "", "", None)[0]
