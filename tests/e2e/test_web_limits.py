"""What strangers send over HTTP: too much, from elsewhere, on routes that are not there."""

from __future__ import annotations

import contextlib
import re
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import leaderboard_world as world
import plain_http
import pytest
from cir_here import cir

MIB = 2**20
MEMORY_MIB = 400
UPLOADS = ["/api/submissions?board=shapes/val", "/submit"]
JSON_ROUTES = ["/submit/look", "/api/boards", "/", "/nothing"]
EVIL = "https://evil.example"


@pytest.fixture(scope="module")
def server(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("web")
    alone = world.alone(folder, new_database())
    with world.serving(folder / "home", bare=True, CIR_LEADERBOARD_MAX_UPLOAD_MB="1", **alone) as running:
        yield running
        assert "Traceback" not in running.log.read_text()


def peak_mib(server: Any) -> float:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1024


def error_of(answer: httpx.Response) -> dict[str, str]:
    error: dict[str, str] = answer.json()["error"]
    assert error.keys() == {"code", "message", "fix"}
    assert all(error.values())
    return error


def pieces(size: int, piece: bytes = b"x" * 2**16) -> Iterator[bytes]:
    for _ in range(size // len(piece)):
        yield piece


def form(parts: Iterator[bytes]) -> Iterator[bytes]:
    """A form's body with the boundary `b`."""
    for part in parts:
        yield b"--b\r\n" + part + b"\r\n"
    yield b"--b--\r\n"


FORM = {"content-type": "multipart/form-data; boundary=b"}
FILE_PART = b'Content-Disposition: form-data; name="file"; filename="a.json"\r\n\r\n{}'
TEXT_PART = b'Content-Disposition: form-data; name="n"\r\n\r\n1'


def address(server: Any) -> tuple[str, int]:
    host, _, port = server.url.removeprefix("http://").partition(":")
    return host, int(port)


def exchanged(server: Any, sent: bytes, *, seconds: float = 20.0) -> bytes:
    """Everything that the server answers to these bytes until it ends the connection."""
    with socket.create_connection(address(server), timeout=seconds) as connection:
        connection.sendall(sent)
        answered = b""
        with contextlib.suppress(ConnectionResetError):
            while received := connection.recv(65536):
                answered += received
    return answered


def head(server: Any, method: str, path: str, *lines: str) -> bytes:
    host, port = address(server)
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}:{port}", *lines, "", ""]).encode()


@pytest.mark.parametrize("path", [*UPLOADS, *JSON_ROUTES])
@pytest.mark.parametrize("with_length", [True, False])
def test_a_body_over_the_limit_is_refused_on_every_route(server: Any, path: str, with_length: bool) -> None:
    size = 2 * MIB if path in UPLOADS else MIB // 4
    kind = FORM if path == "/submit" else {}
    parts = [b"--b\r\n", FILE_PART, *pieces(size)]
    content: Any = b"".join(parts) if with_length else iter(parts)
    answer = plain_http.post(server.url + path, content=content, headers=kind, timeout=300)
    expected = {404: "not-found", 405: "wrong-method", 413: "too-large"}
    assert error_of(answer)["code"] == expected[answer.status_code]
    assert answer.status_code == 413 or path in JSON_ROUTES[1:]


def test_a_length_that_is_too_large_is_refused_before_the_body(server: Any) -> None:
    for path in ("/submit/look", "/submit", "/api/submissions"):
        kind = FORM["content-type"] if path == "/submit" else "application/json"
        lines = (f"Content-Length: {10**12}", f"Content-Type: {kind}", "Connection: close")
        answered = exchanged(server, head(server, "POST", path, *lines))
        assert answered.startswith(b"HTTP/1.1 413 "), path
        assert b'"too-large"' in answered


@pytest.mark.parametrize("part", [FILE_PART, TEXT_PART])
def test_a_form_of_10000_parts_is_refused(server: Any, part: bytes) -> None:
    content = b"".join(form(iter([part] * 10_000)))[: MIB - 1]
    answer = plain_http.post(server.url + UPLOADS[0], content=content, headers=FORM, timeout=300)
    assert answer.status_code == 400
    assert error_of(answer)["code"] == "bad-form"
    assert "Too many" in error_of(answer)["message"]


@pytest.mark.parametrize(
    ("headers", "content"),
    [
        ({"content-type": "multipart/form-data"}, b"--b"),
        ({"content-type": f"multipart/form-data; boundary={'b' * 300}"}, b"--b"),
        (FORM, b"nonsense"),
        (FORM, b"--b\r\n" + b"A: b\r\n" * 100 + b"\r\n"),
        (FORM, b"--b\r\nContent-Disposition: form-data\r\n\r\n1\r\n--b--\r\n"),
        (
            FORM,
            b'--b\r\nContent-Disposition: form-data; name="n"\r\n\r\n' + b"x" * 100_000 + b"\r\n--b--\r\n",
        ),
    ],
)
def test_a_malformed_form_is_4xx(server: Any, headers: dict[str, str], content: bytes) -> None:
    answer = plain_http.post(server.url + UPLOADS[0], content=content, headers=headers, timeout=300)
    assert answer.status_code == 400
    assert error_of(answer)["code"] == "bad-form"


def test_an_upload_that_stops_short_leaves_a_line_and_no_file(server: Any) -> None:
    begun = b"--b\r\n" + FILE_PART + b" " * 70_000
    line = "the client left before its body was complete"
    ways = [(path, kind) for path in UPLOADS for kind in (FORM["content-type"], "application/json")][:3]
    for path, kind in ways:
        length = ("Content-Length: 900000", f"Content-Type: {kind}", "Origin: " + server.url)
        with socket.create_connection(address(server)) as connection:
            connection.sendall(
                head(server, "POST", f"{path}{'&' if '?' in path else '?'}name=s3cret", *length)
            )
            connection.sendall(begun)
            time.sleep(0.3)
    until = time.monotonic() + 300
    while server.log.read_text().count(line) < len(ways) and time.monotonic() < until:
        time.sleep(0.1)
    log = server.log.read_text()
    assert f"POST /submit: {line}" in log
    assert f"POST /api/submissions: {line}" in log
    assert "s3cret" not in log
    assert list((server.home / "files" / "incoming").glob("*")) == []
    assert server.get("/health").json()["waiting"] == 0
    ended = plain_http.post(server.url + UPLOADS[0], content=begun, headers=FORM, timeout=300)
    assert (ended.status_code, error_of(ended)["code"]) == (422, "missing-file")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/config"),
        ("GET", "/gradio_api/info"),
        ("GET", "/manifest.json"),
        ("GET", "/submit/look"),
        ("POST", "/gradio_api/upload"),
        ("POST", "/login"),
        ("PUT", "/"),
    ],
)
def test_routes_that_no_page_needs_are_not_there(server: Any, method: str, path: str) -> None:
    answer = plain_http.request(method, server.url + path, timeout=300)
    assert answer.status_code in (404, 405)
    assert error_of(answer)["code"] in ("not-found", "wrong-method")


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../../../../../../etc/passwd",
        "/assets/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/site/%2e%2e/%2e%2e/%2e%2e/leaderboard/cli.py",
        "/static/..%5c..%5croutes.py",
        "/static//etc/passwd",
        "/assets/%00",
        "/api/submissions/..%2f..%2fleaderboard.sqlite/file",
        "/api/submissions/%2e%2e/file",
        "/api/boards/../../etc/passwd",
    ],
)
def test_no_path_leads_out(server: Any, path: str) -> None:
    answered = exchanged(server, head(server, "GET", path, "Connection: close"))
    assert answered.split()[1] in (b"400", b"403", b"404"), answered[:200]
    assert b'"error"' in answered
    assert b"root:" not in answered
    assert b"SQLite" not in answered


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "a@localhost", "", "[::2]"]
)
@pytest.mark.parametrize("path", ["/", "/api/boards", "/submit"])
def test_a_foreign_host_is_refused(server: Any, host: str, path: str) -> None:
    answer = plain_http.get(server.url + path, headers={"host": host}, timeout=300)
    assert answer.status_code == 400
    assert error_of(answer)["code"] == "unknown-host"
    assert "--allowed-host" in error_of(answer)["fix"]


def test_names_of_this_machine_are_answered(server: Any) -> None:
    port = server.url.rsplit(":", maxsplit=1)[1]
    for host in ("localhost", f"LOCALHOST:{port}", "127.0.0.1", "[::1]:80"):
        assert server.get("/health", headers={"host": host}).status_code == 200


def test_a_forwarded_host_changes_no_page(server: Any) -> None:
    for header in ("x-forwarded-host", "x-original-host"):
        answer = server.get("/submit", headers={header: "http://evil.example"})
        assert answer.status_code == 200
        assert "evil.example" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": EVIL},
        {"origin": "null"},
        {"origin": "http://localhost:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": EVIL, "sec-fetch-site": "same-origin"},
    ],
)
@pytest.mark.parametrize("path", ["/api/submissions?board=shapes/val", "/submit/look", "/submit"])
def test_a_write_of_another_site_is_refused(server: Any, path: str, headers: dict[str, str]) -> None:
    answer = plain_http.post(server.url + path, content=b"{}", headers=headers, timeout=300)
    assert answer.status_code == 403
    assert error_of(answer)["code"] == "cross-origin"
    assert "access-control-allow-origin" not in answer.headers


def test_a_write_of_this_site_and_of_a_program_pass(server: Any) -> None:
    for headers in ({}, {"origin": server.url}, {"origin": server.url, "sec-fetch-site": "same-origin"}):
        files = {"file": ("a.json", b"{}")}
        answer = plain_http.post(server.url + "/submit", files=files, headers=headers, timeout=300)
        assert answer.status_code == 400
        assert "missing-board" in answer.text


def test_any_site_may_read_the_api_without_credentials_and_nothing_else(server: Any) -> None:
    open_to = "access-control-allow-origin"
    for path in ("/health", "/api/boards", "/api/boards/shapes/val", "/api/nothing"):
        answer = server.get(path, headers={"origin": EVIL})
        assert answer.headers[open_to] == "*"
        assert "access-control-allow-credentials" not in answer.headers
    asking = {"origin": EVIL, "access-control-request-method": "GET"}
    assert httpx.options(server.url + "/api/boards", headers=asking, timeout=300).headers[open_to] == "*"
    asking["access-control-request-method"] = "POST"
    refused = httpx.options(server.url + "/api/submissions", headers=asking, timeout=300)
    assert refused.status_code == 400
    assert "POST" not in refused.headers["access-control-allow-methods"]
    for path in ("/", "/theme.css", "/submit"):
        for method in ("GET", "OPTIONS"):
            answer = plain_http.request(method, server.url + path, headers=asking, timeout=300)
            assert [name for name in answer.headers if name.startswith("access-control")] == [], path


def test_every_answer_says_what_browsers_may_do_with_it(server: Any) -> None:
    for path in ("/", "/submit", "/api/boards", "/api/nothing", "/nothing", "/theme.css"):
        headers = server.get(path).headers
        assert "frame-ancestors 'self'" in headers["content-security-policy"]
        assert "huggingface" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"


def test_headers_cannot_be_injected(server: Any) -> None:
    for path in ("/api/submissions/a%0d%0aSet-Cookie:%20a=b", "/api/boards/a%0aX: y", "/%0d%0aX-Evil:1"):
        answered = exchanged(server, head(server, "GET", path.replace(" ", "%20"), "Connection: close"))
        headers = answered.partition(b"\r\n\r\n")[0].lower()
        assert answered.split()[1] == b"404"
        assert b"set-cookie" not in headers
        assert b"x-evil" not in headers


def test_what_is_not_http_is_answered_400(server: Any) -> None:
    for sent in (b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", b"\x16\x03\x01\x02\x00"):
        assert exchanged(server, sent).startswith(b"HTTP/1.1 400 ")
    twice = b"GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert exchanged(server, twice).startswith(b"HTTP/1.1 400 ")


def test_a_failing_database_is_503_and_says_when_to_return(tmp_path: Path) -> None:
    with world.serving_here(tmp_path / "home", CIR_DATA_HOME="") as running:
        (database,) = (tmp_path / "home").glob("*.sqlite")
        with contextlib.closing(sqlite3.connect(database)) as opened:
            for (table,) in opened.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            ).fetchall():
                opened.execute(f"ALTER TABLE {table} RENAME TO gone_{table}")
        answer = running.get("/api/boards")
        assert answer.status_code == 503
        assert error_of(answer)["code"] == "unavailable"
        assert answer.headers["retry-after"]
        assert "table" not in answer.text
        assert "GET /api/boards: unavailable" in running.log.read_text()


@pytest.mark.slow
def test_inside_a_space_the_hub_may_show_the_pages(tmp_path: Path) -> None:
    space = {"SPACE_ID": "team/board", "SPACE_HOST": "team-board.hf.space"}
    logs = tmp_path / "logs"
    more = {"CIR_LEADERBOARD_HOSTS": "board.example.org", "CIR_LEADERBOARD_LOGS": str(logs)}
    with world.serving(tmp_path / "home", CIR_DATA_HOME="", **space, **more) as running:
        for host in ("team-board.hf.space", "board.example.org"):
            answer = running.get("/", headers={"host": host})
            assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'self' https://huggingface.co" in policy
        exchanged(running, b"nonsense\r\n\r\n")
        assert "Invalid HTTP request" in (logs / "web.log").read_text()


def test_a_host_that_is_not_a_name_is_refused_at_start(tmp_path: Path) -> None:
    done = cir(
        "leaderboard", "serve", "--home", str(tmp_path), "--allowed-host", "https://a.example/", code=2
    )
    assert "is not a host name" in done.stderr


@pytest.mark.slow
def test_200_mib_bodies_cost_no_memory(server: Any) -> None:
    """Beside them an innocent upload is taken and judged."""

    def one_part(begin: bytes) -> Iterator[bytes]:
        yield b"--b\r\n" + begin
        yield from pieces(200 * MIB)

    as_json = {"content-type": "application/json"}
    bodies = [
        ("/submit/look", as_json, lambda: pieces(200 * MIB, b"[" * 2**16)),
        ("/api/boards", as_json, lambda: pieces(200 * MIB, b"[],{}," * 2**14)),
        ("/submit", FORM, lambda: one_part(FILE_PART)),
        ("/submit", FORM, lambda: one_part(TEXT_PART)),
        (UPLOADS[0], FORM, lambda: one_part(FILE_PART)),
        (UPLOADS[0], {}, lambda: pieces(200 * MIB)),
    ]

    def send(path: str, headers: dict[str, str], body: Any) -> int:
        try:
            return plain_http.post(server.url + path, content=body(), headers=headers, timeout=60).status_code
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
            return 0

    before = peak_mib(server)
    with ThreadPoolExecutor(len(bodies)) as pool:
        sent = [pool.submit(send, *one) for one in bodies]
        done = server.submitted(world.as_bytes(world.rank_file(11, "Innocent")))
        statuses = [one.result() for one in sent]
    print(f"peak {peak_mib(server):.0f} MiB, {before:.0f} before; statuses {statuses}")
    assert done["state"] == "published"
    assert set(statuses) <= {0, 400, 404, 405, 413}
    assert peak_mib(server) < MEMORY_MIB


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server with a board whose files are small."""
    home = tmp_path_factory.mktemp("small") / "home"
    own = home / "boards" / "small.yaml"
    own.parent.mkdir(parents=True)
    shapes = (world.ROOT / "leaderboard" / "boards" / "shapes_val.yaml").read_text()
    own.write_text(shapes.replace("id: shapes/val", "id: shapes/small") + "\nmax_mb: 1\n")
    with world.serving_here(home) as running:
        yield running


def test_a_boards_own_limit_ends_a_form_while_it_comes(small: Any) -> None:
    begun = b"--b\r\n" + FILE_PART + b" " * (MIB + 2**16)
    lines = (f"Content-Length: {30 * MIB}", "Content-Type: " + FORM["content-type"], "Connection: close")
    answer = exchanged(small, head(small, "POST", "/api/submissions?board=shapes/small", *lines) + begun)
    assert b" 413 " in answer.partition(b"\r\n")[0]
    assert b"1,048,576 bytes, the limit of the board shapes/small" in answer
