"""Boards read from a real server: by the client, by `cir leaderboard pull`, and while entries come in."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import leaderboard_world as world
import pytest
from http_hub import HttpServer, as_json

from leaderboard.client import Client
from leaderboard.errors import RemoteError, UploadRefusedError

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "leaderboard_api.md").read_text(encoding="utf-8")
BOARD = "shapes/val"


@pytest.fixture(scope="module")
def server(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("reading")
    alone = world.alone(folder, new_database())
    with world.serving_here(folder / "home", **alone) as running:
        for seed, hits in enumerate((0.8, 0.4, 0.0), start=1):
            done = running.submitted(world.as_bytes(world.rank_file(seed, f"Method {seed}", hits=hits)))
            assert done["state"] == "published"
        packed = gzip.compress(world.as_bytes(world.rank_file(4, "=1+1", hits=0.2)), mtime=0)
        assert running.submitted(packed)["state"] == "published"
        running.rows()  # waits for their groups
        yield running


@pytest.fixture
def client(server: Any) -> Iterator[Client]:
    opened = Client(server.url)
    yield opened
    opened.close()


def test_the_client_reads_boards_and_entries(client: Client) -> None:
    found = {board["id"]: board["entries"] for board in client.boards()}
    assert found[BOARD] >= 4
    table = client.board(BOARD)
    assert [row["rank"] for row in table["rows"][:3]] == [1, 2, 3]
    in_order = sorted(table["rows"], key=lambda row: int(row["number"]))
    assert list(client.entries(BOARD)) == list(client.entries(BOARD, limit=1))
    assert [row["submission"] for row in client.entries(BOARD)] == [row["submission"] for row in in_order]
    assert list(client.entries(BOARD, after=in_order[0]["number"])) == list(client.entries(BOARD))[1:]
    with pytest.raises(UploadRefusedError, match="nothing/here"):
        client.board("nothing/here")


def test_the_client_hands_in_a_file_without_a_board(server: Any, client: Client, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(world.as_bytes(world.rank_file(1, "Method 1", hits=0.8)))
    sent = client.submit(path)
    assert (sent["board"], sent["file_name"], sent["new"]) == (BOARD, "run.json", False)
    path.write_bytes(b"{}")
    with pytest.raises(UploadRefusedError, match="missing-board"):
        client.submit(path)


def test_a_folder_is_brought_up_to_date(server: Any, client: Client, tmp_path: Path) -> None:
    to = tmp_path / "boards"
    world.cir("leaderboard", "pull", server.url, BOARD, "--to", str(to), "--files", code=0)
    table = json.loads((to / "shapes/val/table.json").read_text(encoding="utf-8"))
    assert table["rows"] == client.board(BOARD)["rows"]
    with (to / "shapes/val/table.csv").open(encoding="utf-8", newline="") as handle:
        cells = list(csv.DictReader(handle))
    assert [float(line["main"]) for line in cells] == [row["main"] for row in table["rows"]]
    assert "'=1+1" in [line["name"] for line in cells]
    files = {path.name.partition(".")[0]: path for path in (to / "shapes/val/files").iterdir()}
    for row in table["rows"]:
        content = files[row["submission"]].read_bytes()
        assert hashlib.sha256(content).hexdigest() == row["sha256"]
        assert (files[row["submission"]].suffix == ".gz") is (row["method"]["name"] == "=1+1")
    files[table["rows"][0]["submission"]].write_bytes(b"damaged")
    again = client.pull(to, files=True)
    assert [path.name for path in again] == [
        "table.json",
        "table.csv",
        files[table["rows"][0]["submission"]].name,
    ]
    assert list(client.pull(tmp_path / "other", [BOARD])) == [
        tmp_path / "other" / BOARD / "table.json",
        tmp_path / "other" / BOARD / "table.csv",
    ]


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ({"id": "../escaped"}, {}),
        ({"id": "shapes/val"}, {"submission": "../../escaped", "sha256": "0" * 64}),
        ({"id": "shapes/val"}, {"submission": "abc", "sha256": "0" * 64}),
        ({"id": "shapes/val"}, {"submission": "abc", "sha256": "/etc/passwd"}),
    ],
)
def test_a_hostile_server_writes_nowhere_else(
    tmp_path: Path, table: dict[str, Any], row: dict[str, Any]
) -> None:
    def route(request: Any) -> Any:
        if request.path == "/api/v1/boards":
            return as_json({"boards": [{"id": table["id"], "entries": 1}]})
        return as_json({**table, "rows": [row]})

    to = tmp_path / "deep" / "boards"
    with HttpServer(route) as hostile:
        client = Client(hostile.url)
        with pytest.raises(RemoteError):
            client.pull(to, files=True)
        client.close()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(path.name in ("table.json", "table.csv") and to in path.parents for path in written)


def test_the_page_lists_every_route(server: Any) -> None:
    """Its table is the OpenAPI document's; tests/e2e/test_tutorial.py runs its examples."""
    document = server.get("/api/openapi.json").json()
    routes = re.findall(r"^- `(GET|POST) (/[^`]+)`", PAGE, re.MULTILINE)
    assert {path for _, path in routes} == set(document["paths"])
    assert all(method.lower() in document["paths"][path] for method, path in routes)
    moved = server.get("/api/", follow_redirects=False)
    assert (moved.status_code, moved.headers["location"]) == (308, "../api")


def test_the_page_explains_every_column(server: Any) -> None:
    head = server.get(f"/api/v1/boards/{BOARD}?format=csv").text.splitlines()[0].split(",")
    metrics = server.get(f"/api/v1/boards/{BOARD}").json()["rows"][0]["metrics"]
    assert [name for name in head if name not in metrics and f"`{name}`" not in PAGE] == []
