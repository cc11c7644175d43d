"""What strangers may not reach: the submissions of others by any route or page, files of this machine."""

from __future__ import annotations

import json
import time
from typing import Any

import leaderboard_world as world
import plain_http
import pytest

from leaderboard.server.callers import EDIT_KEY

Owners = dict[str, dict[str, str]]
NAME, SUBMITTER, NOTES = "Nobody's business", "Quiet Ada", "not for others"
FILE_NAME = "quiet.json"


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(server_with_accounts: Any) -> Any:
    return server_with_accounts


@pytest.fixture(scope="module", params=["private", "withdrawn", "hidden"])
def hidden(request: pytest.FixtureRequest, server: Any, owners: Owners) -> dict[str, Any]:
    """A submission of Ada's that nobody else may see."""
    ada = owners["ada"]
    seed = ["private", "withdrawn", "hidden"].index(request.param)
    document = world.rank_file(seed, NAME, notes=NOTES)
    query = {"board": world.BOARD, "submitter": SUBMITTER, "file_name": FILE_NAME}
    address = f"{server.url}/api/submissions"
    sent = plain_http.post(address, params=query, content=world.as_bytes(document), headers=ada, timeout=300)
    while not (found := server.get(f"/api/submissions/{sent.json()['id']}", headers=ada).json())["finished"]:
        time.sleep(0.1)
    ways = {"private": "correct", "withdrawn": "withdraw", "hidden": "hide"}
    organiser = owners["org"]
    reason = {"reason": NOTES} if request.param == "hidden" else {}
    way = f"{address}/{found['id']}/{ways[request.param]}"
    found = plain_http.post(way, json=reason, headers=organiser, timeout=300).json()
    assert found["state"] == request.param
    return dict(found)


def said_in(content: bytes, hidden: dict[str, Any]) -> list[str]:
    """What of a submission stands in an answer; its id only where the request did not name it."""
    words = (NAME, SUBMITTER, NOTES, FILE_NAME, hidden["sha256"])
    return [word for word in words if word.encode() in content or json.dumps(word).encode() in content]


def test_no_route_tells_of_what_is_not_public(server: Any, hidden: dict[str, Any], owners: Owners) -> None:
    """Every route of the OpenAPI document, and its first form without /v1, with every action."""
    document = server.get("/api/openapi.json").json()
    reads, writes = 0, 0
    strangers: tuple[dict[str, str], ...] = ({}, owners["bob"], {EDIT_KEY: "x" * 40})
    for path, operations in document["paths"].items():
        filled = path.replace("{submission_id}", hidden["id"]).replace("{board_id}", "shapes/val")
        about_it = "{submission_id}" in path
        actions = next(
            (
                one["schema"]["enum"]
                for one in operations.get("post", {}).get("parameters", [])
                if one["name"] == "action"
            ),
            [""],
        )
        for action in actions:
            where = filled.replace("{action}", action)
            for address in {where, where.replace("/api/v1/", "/api/")}:
                for headers in strangers:
                    if "get" in operations:
                        taken = [one["name"] for one in operations["get"].get("parameters", ())]
                        query = {"board": "shapes/val"} if "board" in taken else {}
                        answer = server.get(address, headers=headers, params=query)
                        reads += 1
                    else:
                        answer = plain_http.post(server.url + address, json={}, headers=headers, timeout=300)
                        writes += 1
                    assert said_in(answer.content, hidden) == [], address
                    if about_it:
                        assert answer.status_code == 404, (address, answer.text)
                    else:
                        assert hidden["id"].encode() not in answer.content
    print(f"{hidden['state']}: {reads} reads, {writes} writes")
    assert reads > 30
    assert writes > 30
    for form in ("csv", "parquet"):
        table = server.get(f"/api/v1/boards/shapes/val?format={form}").content
        assert said_in(table, hidden) == []


@pytest.mark.browser
def test_no_page_tells_of_what_is_not_public(server: Any, hidden: dict[str, Any], page: Any) -> None:
    one = hidden["id"]
    paths = ("/", "/submit", "/about", f"/b/shapes/val?entry={one}", f"/e/{one}", f"/s/{one}")
    for path in (*paths, f"/s/{one}#edit_{'x' * 40}", f"/submission?id={one}"):
        page.goto("about:blank")
        page.goto(server.url + path)
        page.wait_for_load_state("networkidle")
        assert said_in(page.content().encode(), hidden) == [], path
    assert page.url == f"{server.url}/s/{one}"
    assert "none that you may read" in page.inner_text("#outcome")
