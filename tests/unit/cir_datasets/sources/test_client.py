"""What a server can do to those who ask it, through real HTTP: every door is bounded, and keeps its keys."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from http_hub import Fault, HttpServer, Reply, Request, as_json
from programs import run_program
from says import says

from cir_datasets.errors import HttpAnswerError, LateAnswerError
from cir_datasets.sources.client import BoundedClient
from cir_metrics.errors import CirError
from leaderboard.client import Client
from leaderboard.errors import RemoteError
from submissions.errors import LanguageError
from submissions.language.server import ServerLanguage

KEY = "sk-made-up-for-tests"
MOVES = [301, 302, 303, 307, 308]


class Elsewhere(HttpServer):
    """Takes everything, and notes the heads and bodies that come."""

    def reply(self, request: Request) -> Reply:
        return as_json({"boards": [], "max_upload_bytes": 1})

    def record(self, request: Request) -> Any:
        return request.method, dict(request.headers), request.body


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    with Elsewhere() as running:
        yield running


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "OPENAI_BASE_URL",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))


def asked(url: str) -> None:
    language = ServerLanguage("tiny", url=f"{url}/v1", key=KEY, cache=False, attempts=1, timeout=60)
    language.judge("Look: {text}", [{"text": "a secret prompt"}])


def with_login(url: str) -> None:
    Client(url.replace("://", "://me:secret@")).boards()


def submitted(url: str, path: Path) -> None:
    path.write_text("{}")
    client = Client(url)
    client._http.headers["X-Edit-Key"] = KEY  # as after an upload
    client.submit(path)


DOORS: dict[str, Callable[[str, Path], None]] = {
    "prompts": lambda url, folder: asked(url),
    "token": lambda url, folder: Client(url, token=KEY).boards() and None,
    "login": lambda url, folder: with_login(url),
    "upload": lambda url, folder: submitted(url, folder / "run.json"),
}


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("status", MOVES)
@pytest.mark.parametrize("door", DOORS)
def test_no_redirect_takes_a_key_or_a_body_to_another_server(
    door: str, status: int, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    def moved(request: Request) -> Reply:
        return Reply(b"", status, {"Location": elsewhere.url + request.path})

    with HttpServer(moved) as server:
        with pytest.raises((RemoteError, LanguageError)) as caught:
            DOORS[door](server.url, tmp_path)
        says(caught, server.url, elsewhere.url, "Fix: write", "if you trust it")
    assert elsewhere.requests == []
    assert KEY not in str(caught.value)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("status", MOVES)
def test_what_anybody_may_read_is_followed_without_a_key(status: int, elsewhere: Elsewhere) -> None:
    """A public board has moved; the Hub sends a download to its store, which gets no token."""
    with HttpServer(lambda _: Reply(b"", status, {"Location": elsewhere.url})) as server:
        assert Client(server.url).boards() == []
        headers = {"Authorization": f"Bearer {KEY}", "X-Edit-Key": KEY, "Cookie": KEY}
        with BoundedClient(seconds=5, num_bytes=2**10, sheds_key=True, headers=headers) as client:
            assert client.get(server.url).status_code == 200
    assert [KEY in str(head) for _, head, _ in elsewhere.requests] == [False, False]


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("status", MOVES)
def test_a_redirect_within_the_server_keeps_the_key(status: int) -> None:
    def reply(request: Request) -> Reply:
        if request.path == "/moved":
            return as_json({"boards": []})
        return Reply(b"", status, {"Location": "/moved"})

    with HttpServer(reply) as server:
        assert Client(server.url, token=KEY).boards() == []
        assert server.authorizations == {f"Bearer {KEY}"}


@pytest.mark.usefixtures("plain")
def test_a_server_that_sends_in_circles_is_left(tmp_path: Path) -> None:
    with HttpServer(lambda request: Reply(b"", 302, {"Location": "/again"})) as server:
        with pytest.raises(RemoteError, match="from one address to the next"):
            Client(server.url).boards()
        assert len(server.requests) == 10


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("kind", ["trickle", "trickling head"])
@pytest.mark.parametrize("door", ["health", "language"])
def test_the_whole_answer_has_one_deadline(door: str, kind: str) -> None:
    with HttpServer(lambda _: as_json({"max_upload_bytes": 1})) as server:
        server.faults["/"] = Fault(kind, seconds=0.01)
        if door == "health":
            with pytest.raises(RemoteError) as caught:
                Client(server.url, seconds=0.2).max_upload_bytes()
            says(caught, server.url, "no whole answer after 0.2 seconds", "Fix: try again")
        else:
            with BoundedClient(seconds=0.2, num_bytes=2**20) as client, pytest.raises(LateAnswerError):
                client.post(f"{server.url}/v1/chat/completions", json={})
        assert server.trickled_out == 0


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("kind", ["endless", "huge"])
def test_a_body_is_left_at_its_budget(kind: str, tmp_path: Path) -> None:
    with HttpServer(lambda _: as_json({})) as server:
        server.faults["/"] = Fault(kind)
        for door in ("token", "prompts", "upload"):
            with pytest.raises(CirError) as caught:
                DOORS[door](server.url, tmp_path)
            says(caught, server.url, "more than ", " bytes come", "Fix: check the address")
        assert server.sent < 3 * 2**25


_CHILD = """
import resource, sys
from leaderboard.client import Client
from submissions.language.server import ServerLanguage
import openai, openai.resources.chat
import os
pages = int(open("/proc/self/statm").read().split()[0])
room = pages * os.sysconf("SC_PAGE_SIZE") + 2**29
resource.setrlimit(resource.RLIMIT_AS, (room, room))
url = sys.argv[1]
asked = ServerLanguage("tiny", url=url + "/v1", key="k", cache=False, attempts=1, concurrency=1)
for ask in (
    lambda: asked.judge("{text}", [{"text": "a"}]),
    Client(url).boards,
    Client(url).max_upload_bytes,
    lambda: Client(url).file("abc"),
):
    try:
        ask()
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("plain")
def test_what_is_packed_small_does_not_fill_the_memory() -> None:
    """A body of 4 MB that unpacks to 4 GiB, within half a GiB of memory beside what is loaded."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    head = packer.compress(bytes(2**24)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(2**24)) + packer.flush(zlib.Z_FULL_FLUSH)
    bomb = head + again * 255
    reply = Reply(bomb, 200, {"Content-Type": "application/json", "Content-Encoding": "gzip"})
    with HttpServer(lambda _: reply) as server:
        command = [sys.executable, "-c", _CHILD, server.url]
        # Each thread's own arena would reserve room of the limit that nothing fills.
        environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
        done = run_program(command, env=environment, timeout=1200)
    lines = [line for line in done.stdout.splitlines() if "bytes come, unpacked" in line]
    assert len(lines) == 4, done.stdout


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("packing", ["br", "zstd", "compress"])
def test_a_packing_without_a_bound_is_refused_unread(packing: str, tmp_path: Path) -> None:
    with HttpServer(lambda _: Reply(b"1", 200, {"Content-Encoding": packing})) as server:
        for door in ("token", "prompts", "upload"):
            with pytest.raises(CirError) as caught:
                DOORS[door](server.url, tmp_path)
            says(caught, server.url, repr(packing), "Fix: check the address")


@pytest.mark.usefixtures("plain")
def test_a_page_in_place_of_data_is_called_one(tmp_path: Path) -> None:
    page = Reply(b"<html>Please log in</html>", 200, {"Content-Type": "text/html; charset=utf-8"})
    with HttpServer(lambda _: page) as server:
        for door in ("token", "prompts", "upload"):
            with pytest.raises(CirError) as caught:
                DOORS[door](server.url, tmp_path)
            says(caught, server.url, "a page of HTML", "Fix: check the address")


ODD = [
    b"[" * 10**5,
    b"9" * 10**4,
    b"[]",
    b"null",
    b'{"a": NaN}',
    b"\xff\xfe",
    b"",
    b'{"choices": 7, "boards": {}}',
]


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("body", ODD, ids=lambda body: repr(body[:12]))
def test_odd_json_is_said_in_words(body: bytes, tmp_path: Path) -> None:
    with HttpServer(lambda _: Reply(body, 200, {"Content-Type": "application/json"})) as server:
        for door in ("token", "prompts"):
            with pytest.raises(CirError) as caught:
                DOORS[door](server.url, tmp_path)
            says(caught, "JSON of the chat API" if door == "prompts" else "no leaderboard of ours")


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
def test_this_machine_is_asked_without_the_proxy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    with HttpServer(lambda _: as_json({"boards": []})) as server:
        assert Client(server.url).boards() == []
        assert Client(server.url.replace("127.0.0.1", "localhost")).boards() == []
        with BoundedClient(seconds=5, num_bytes=2**10) as client, pytest.raises(Exception, match="refused"):
            client.get("http://board.example.org")  # others are asked through it


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
def test_every_loopback_address_is_asked_without_the_proxy(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    with HttpServer(lambda _: as_json({"boards": []}), host="127.0.0.2") as server:
        assert Client(server.url).boards() == []


def _no_leaderboard() -> Any:
    return pytest.raises(RemoteError, match=r"no leaderboard of ours\. Fix: check the address")


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("limit", [True, 0, -5, 1.5, "7", None])
def test_a_limit_that_is_no_whole_number_is_a_strangers(limit: object) -> None:
    with HttpServer(lambda _: as_json({"max_upload_bytes": limit})) as server, _no_leaderboard():
        Client(server.url).max_upload_bytes()


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("following", [True, "7", 0, 1.5])
def test_a_page_of_entries_that_names_no_next_one_is_a_strangers(following: object) -> None:
    with HttpServer(lambda _: as_json({"entries": [], "next": following})) as server, _no_leaderboard():
        list(Client(server.url).entries("shapes/val"))


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("key", ["edit_a\nHost: evil", "edit_\x1b[2J", "ed it", "édit", "", 7, True])
def test_an_edit_key_that_no_header_can_hold_is_a_strangers(key: object, tmp_path: Path) -> None:
    sent = tmp_path / "run.json"
    sent.write_text("{}")
    with HttpServer(lambda _: as_json({"id": "1", "edit_key": key})) as server:
        client = Client(server.url)
        with _no_leaderboard():
            client.submit(sent)
        assert client.edit_key == ""


def test_an_error_of_an_answer_survives_pickle() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(LateAnswerError("late", "wait", True)))
    assert (str(error), error.passing) == ("late. Fix: wait.", True)
    assert isinstance(error, HttpAnswerError)
