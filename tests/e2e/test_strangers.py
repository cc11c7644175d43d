"""What strangers may not reach: the submissions of others by any route or page, files of this machine."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import plain_http
import pytest

from leaderboard.callers import EDIT_KEY
from leaderboard.identity.tokens import Tokens
from leaderboard.settings import Settings
from leaderboard.store import Store

NAME, SUBMITTER, NOTES = "Nobody's business", "Quiet Ada", "not for others"
FILE_NAME = "quiet.json"


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def settings(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home = tmp_path_factory.mktemp("strangers") / "home"
    home.mkdir()
    return Settings(home, database=new_database())


@pytest.fixture(scope="module")
def tokens(settings: Settings) -> dict[str, str]:
    store = Store(settings.database_url)
    made = {name: Tokens(store).create(name) for name in ("ada", "bob")}
    made["org"] = Tokens(store).create("org", "organiser")
    store.close()
    return made


@pytest.fixture(scope="module")
def server(world: ModuleType, settings: Settings, tokens: dict[str, str]) -> Iterator[Any]:
    alone = {"CIR_LEADERBOARD_DATABASE": settings.database, "CIR_DATA_HOME": ""}
    with world.serving_here(settings.home, CIR_LEADERBOARD_ACCOUNTS="tokens", **alone) as running:
        yield running


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module", params=["private", "withdrawn", "hidden"])
def hidden(request: pytest.FixtureRequest, server: Any, world: ModuleType, tokens: Any) -> dict[str, Any]:
    """A submission of Ada's that nobody else may see."""
    ada = bearer(tokens["ada"])
    seed = ["private", "withdrawn", "hidden"].index(request.param)
    document = world.rank_file(seed, NAME, notes=NOTES)
    query = {"board": world.BOARD, "submitter": SUBMITTER, "file_name": FILE_NAME}
    address = f"{server.url}/api/submissions"
    sent = plain_http.post(address, params=query, content=world.as_bytes(document), headers=ada, timeout=300)
    while not (found := server.get(f"/api/submissions/{sent.json()['id']}", headers=ada).json())["finished"]:
        time.sleep(0.1)
    ways = {"private": "correct", "withdrawn": "withdraw", "hidden": "hide"}
    organiser = bearer(tokens["org"])
    reason = {"reason": NOTES} if request.param == "hidden" else {}
    way = f"{address}/{found['id']}/{ways[request.param]}"
    found = plain_http.post(way, json=reason, headers=organiser, timeout=300).json()
    assert found["state"] == request.param
    return dict(found)


def said_in(content: bytes, hidden: dict[str, Any]) -> list[str]:
    """What of a submission stands in an answer; its id only where the request did not name it."""
    words = (NAME, SUBMITTER, NOTES, FILE_NAME, hidden["sha256"])
    return [word for word in words if word.encode() in content or json.dumps(word).encode() in content]


def test_no_route_tells_of_what_is_not_public(server: Any, hidden: dict[str, Any], tokens: Any) -> None:
    """Every route of the OpenAPI document, and its first form without /v1, with every action."""
    document = server.get("/api/openapi.json").json()
    reads, writes = 0, 0
    strangers: tuple[dict[str, str], ...] = ({}, bearer(tokens["bob"]), {EDIT_KEY: "x" * 40})
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


def test_the_page_reads_no_file_of_this_machine(
    server: Any, settings: Settings, world: ModuleType, tmp_path: Path
) -> None:
    """Neither by its path, nor by a link that lies among the uploads, nor from an address."""
    submit = server.get("/submit").text
    found = re.search(r"window\.gradio_config = (\{.*?\});</script>", submit, flags=re.DOTALL)
    config = json.loads(found[1])
    secret = tmp_path / "secret.json"
    secret.write_bytes(world.as_bytes(world.rank_file(40, "Read from the disk")))
    sent = plain_http.post(f"{server.url}/gradio_api/upload", files={"files": ("a.json", b"{}")}, timeout=300)
    (name,) = sent.json()
    uploaded = server.home / "page_uploads" / name.removeprefix("uploads/")
    link = uploaded.with_name("link.json")
    link.symlink_to(secret)
    paths = [
        str(secret),
        f"{uploaded.parent}/../../../{secret}",
        f"file://{secret}",
        "/etc/passwd",
        str(link),
        str(uploaded),
        name.replace("a.json", "link.json"),
    ]
    paths += [f"{server.url}/gradio_api/file={secret}", str(server.home / "leaderboard.sqlite")]
    kinds = {part["id"]: part["type"] for part in config["components"]}
    inputs = [one for one in config["dependencies"] if "file" in {kinds[each] for each in one["inputs"]}]
    assert inputs
    for number, path in enumerate(paths):
        for one in inputs:
            session = f"s{number}x{one['id']}"
            file = {"path": path, "meta": {"_type": "gradio.FileData"}}
            data = ["shapes/val" if kinds[each] == "dropdown" else "" for each in one["inputs"]]
            data = [
                file if kinds[each] == "file" else old for each, old in zip(one["inputs"], data, strict=True)
            ]
            body = {"data": data, "fn_index": one["id"], "session_hash": session}
            joined = plain_http.post(f"{server.url}/gradio_api/queue/join", json=body, timeout=300)
            assert joined.status_code < 500
            if joined.status_code == 200:
                with plain_http.stream(
                    "GET", f"{server.url}/gradio_api/queue/data?session_hash={session}", timeout=300
                ) as stream:
                    answered = "".join(
                        line for line in stream.iter_lines() if "process_completed" in line or "close" in line
                    )
                assert '"success":false' in answered.replace(" ", ""), (path, answered[:500])
                assert "Read from the disk" not in answered
                assert "root:" not in answered
    store = Store(settings.database_url)
    assert store.of_file(hashlib.sha256(secret.read_bytes()).hexdigest()) == []
    store.close()


@pytest.mark.parametrize(
    "name", ["../../../up.json", "..%2f..%2fup.json", "/tmp/up.json", "a\\..\\..\\up.json", "."]
)
def test_a_file_lands_below_the_home_whatever_its_name(server: Any, world: ModuleType, name: str) -> None:
    around = server.home.parent.parent
    content = world.as_bytes(world.rank_file(50, "Up"))[:-9]
    before = {path for path in around.rglob("*") if not path.is_relative_to(server.home)}
    for path, field in (("/api/submissions?board=shapes/val", "file"), ("/gradio_api/upload", "files")):
        answer = plain_http.post(server.url + path, files={field: (name, content)}, timeout=300)
        assert answer.status_code < 500
    after = {path for path in around.rglob("*") if not path.is_relative_to(server.home)}
    assert after - before == set()
    assert not Path("/tmp/up.json").exists()
    uploads = server.home / "page_uploads"
    own = [path for path in server.home.rglob("*") if not path.is_relative_to(uploads)]
    assert "up.json" not in [path.name for path in own]
