"""A leaderboard behind a proxy: the real nginx, with the configuration that compose.yaml gives it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import leaderboard_world as world
import nginx_server
import plain_http
import pytest

ACCOUNTS = {"CIR_LEADERBOARD_ACCOUNTS": "tokens"}


@pytest.fixture
def nginx() -> Any:
    why = nginx_server.missing()
    if why:
        pytest.skip(why)
    return nginx_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    home = tmp_path_factory.mktemp("proxy") / "home"
    with world.serving_here(home, ["127.0.0.1"], CIR_DATA_HOME="", **ACCOUNTS) as running:
        yield running


def codes(url: str, forwarded: str) -> list[int]:
    """Twenty uploads, each of which says to come from another address."""
    return [
        plain_http.post(
            f"{url}/api/submissions?board=shapes/val",
            content=b"[%d]" % number,
            headers={"x-forwarded-for": forwarded.format(number)},
            timeout=300,
        ).status_code
        for number in range(20)
    ]


@pytest.mark.parametrize(
    ("proxies", "through"),
    [((), True), ((), False), (("192.0.2.1",), False), (("127.0.0.1",), True)],
    ids=["unknown proxy", "none", "past it", "known"],
)
def test_a_sender_does_not_say_where_they_are(
    nginx: Any, tmp_path: Path, proxies: tuple[str, ...], through: bool
) -> None:
    limits = {**ACCOUNTS, "CIR_LEADERBOARD_UPLOADS_AN_HOUR": "5"}
    with (
        world.serving_here(tmp_path / "home", proxies, **limits) as running,
        nginx.in_front_of(running.url) as front,
    ):
        taken = codes(front if through else running.url, "198.51.100.{}").count(202)
    assert taken in (5, 10)  # ten where an hour ends meanwhile


def test_senders_behind_it_are_told_apart(tmp_path: Path) -> None:
    """Also where it appends to what they wrote; here the test stands where the proxy does."""
    limits = {**ACCOUNTS, "CIR_LEADERBOARD_UPLOADS_AN_HOUR": "5"}
    with world.serving_here(tmp_path / "home", ["127.0.0.1"], **limits) as running:
        assert codes(running.url, "evil, 198.51.100.{}").count(202) == 20


def test_pages_and_api_are_the_same_behind_it_and_below_a_path(server: Any, nginx: Any) -> None:
    with nginx.in_front_of(server.url) as front:
        for path in ("/", "/submit", "/b/shapes/val", "/api/boards", "/nothing"):
            asked = httpx.URL(front)
            own = server.get(path, headers={"host": f"{asked.host}:{asked.port}"})
            for base in (front, f"{front}/cir"):
                answer = plain_http.get(base + path, timeout=300)
                assert (answer.status_code, answer.text) == (own.status_code, own.text), base


def test_the_proxy_has_the_limits(server: Any, nginx: Any) -> None:
    changed = {"client_max_body_size": "1k", "client_header_timeout": "1s", "limit_req": "zone=requests"}
    with nginx.in_front_of(server.url, **changed) as front:
        upload = f"{front}/api/submissions?board=shapes/val"
        assert plain_http.post(upload, content=b" " * 2000, timeout=300).status_code == 413
        at = httpx.URL(front)
        with socket.create_connection((at.host, at.port), timeout=60) as slow:
            slow.sendall(b"GET / HTTP/1.1\r\nHost: a")
            with contextlib.suppress(ConnectionResetError):
                assert slow.recv(1000) == b""
        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(lambda _: plain_http.get(f"{front}/health", timeout=300), range(40))
        assert 429 in {answer.status_code for answer in answers}


def test_the_proxy_ends_what_is_slow_or_without_end(server: Any, nginx: Any) -> None:
    """Nothing of it reaches the server, which is still there for others."""
    head = b"POST /api/submissions?board=shapes/val HTTP/1.1\r\nHost: localhost\r\n"
    endless = b"Transfer-Encoding: chunked\r\n\r\n" + 32 * (b"10000\r\n" + b"x" * 2**16 + b"\r\n")
    limits = {"client_max_body_size": "1m", "client_body_timeout": "1s", "keepalive_timeout": "1s"}
    with nginx.in_front_of(server.url, **limits) as front:
        at = httpx.URL(front)
        for sent, status in (
            (head + b"Content-Length: 9000\r\n\r\n{", b""),
            (head + endless, b"413"),
            (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"200"),
        ):
            answered = b""
            with socket.create_connection((at.host, at.port), timeout=60) as connection:
                connection.sendall(sent)
                with contextlib.suppress(ConnectionResetError):
                    while received := connection.recv(2**16):
                        answered += received
            assert answered[9:12] == status
        assert plain_http.get(f"{front}/health", timeout=300).json()["waiting"] == 0
    assert list((server.home / "files" / "incoming").glob("*")) == []


@pytest.mark.slow
def test_a_file_is_submitted_below_a_path(nginx: Any, browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(world.as_bytes(world.rank_file(1, "Below")))
    alone = {"CIR_DATA_HOME": "", "CIR_LEADERBOARD_URL": "https://board.example.org/cir"}
    with (
        world.serving_here(tmp_path / "home", ["127.0.0.1"], **alone) as running,
        nginx.in_front_of(running.url) as front,
    ):
        page = browser.new_page()
        refused: list[str] = []
        page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
        page.goto(f"{front}/cir/submit", timeout=300_000)
        page.locator("#field-file").set_input_files(path, timeout=300_000)
        page.wait_for_selector("#named .good", timeout=300_000)
        page.locator("#send").click(timeout=300_000)
        page.wait_for_url(f"{front}/cir/s/*", timeout=300_000)
        page.close()
        assert refused == []
