"""People sign in with a stand-in for Hugging Face that speaks its protocol; what they send is theirs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import leaderboard_world as world
import plain_http
import pytest
from openid_server import Provider, providing, signed_in, space_of
from says import says

pytest.importorskip("authlib", reason="authlib is not installed: it is in the extra leaderboard")


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with providing() as found:
        yield found


@pytest.fixture(scope="module")
def server(
    provider: Provider,
    new_database: Callable[[], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Any]:
    space = {**space_of(provider), "CIR_LEADERBOARD_DATABASE": new_database()}
    with world.serving(tmp_path_factory.mktemp("space") / "home", bare=True, **space) as running:
        yield running


def sent(server: Any, seed: int, headers: dict[str, str]) -> httpx.Response:
    content = world.as_bytes(world.rank_file(seed, f"Method {seed}"))
    query = {"board": world.BOARD}
    return plain_http.post(
        f"{server.url}/api/submissions", params=query, content=content, headers=headers, timeout=300
    )


def test_what_somebody_sends_is_theirs_and_their_organisations(server: Any, provider: Provider) -> None:
    ada, bob = signed_in(server.url, provider, "ada"), signed_in(server.url, provider, "bob")
    taken = sent(server, 1, ada)
    assert taken.status_code == 202, taken.text
    assert taken.json()["edit_key"] is None
    path = f"/api/submissions/{taken.json()['id']}"
    assert server.get(path, headers=ada).status_code == 200
    while not server.get(path, headers=ada).json()["finished"]:
        pass
    assert server.get(path, headers=ada).json()["state"] == "private"
    for headers in ({}, bob, {"Cookie": ada["Cookie"][:-3] + "AAA"}):
        assert server.get(path, headers=headers).status_code == 404
        refused = plain_http.post(f"{server.url}{path}/publish", headers=headers, json={}, timeout=30)
        assert refused.status_code == 404
    published = plain_http.post(f"{server.url}{path}/publish", headers=ada, json={}, timeout=30)
    assert published.json()["state"] == "published"
    elsewhere = {**ada, "Origin": "https://evil.example"}
    crossed = plain_http.post(f"{server.url}{path}/withdraw", headers=elsewhere, json={}, timeout=30)
    assert crossed.json()["error"]["code"] == "cross-origin"


def test_nobody_sends_without_signing_in_and_a_login_ends(server: Any, provider: Provider) -> None:
    refused = sent(server, 2, {})
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "needs-account")
    provider.lifetime = -1
    late = signed_in(server.url, provider, "bob")
    provider.lifetime = 3600
    assert sent(server, 2, late).status_code == 401


def test_the_same_in_a_browser(
    page: Any, browser: Any, server: Any, provider: Provider, tmp_path: Path
) -> None:
    provider.user = "ada"
    # Chromium keeps a cookie that is for https where the address is of this machine.
    page.goto(f"{server.url}/login/huggingface")
    page.wait_for_selector("#who:has-text('Signed in as ada')")
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(world.rank_file(3, "From a browser")))
    page.set_input_files("#field-file", str(file))
    page.click("#send")
    page.wait_for_selector("#outcome.good")
    address = page.url
    assert "From a browser" in page.inner_text("#outcome")
    page.get_by_label("Submitted by").fill("Ada herself")
    page.click("#act-correct")
    page.wait_for_selector("#said:text('Saved.')")
    assert "by its owner" in page.inner_text(".events")
    other = browser.new_context().new_page()
    other.goto(address)
    other.wait_for_selector("#outcome.bad")
    assert "From a browser" not in other.inner_text("body")
    provider.user = "bob"
    other.goto(f"{server.url}/login/huggingface")
    other.wait_for_selector("#who:has-text('Signed in as bob')")
    other.goto(address)
    other.wait_for_selector("#outcome.bad")
    assert "From a browser" not in other.inner_text("body")
    other.context.close()
    page.goto(f"{server.url}/submit")
    page.click("#who button:text('Sign out')")
    page.wait_for_selector("#who a:text('Sign in')")


def test_outside_a_space_such_a_server_does_not_start(provider: Provider) -> None:
    whole = space_of(provider)
    for missing in ("SYSTEM", "SPACE_ID", "OAUTH_CLIENT_SECRET"):
        done = world.cir("leaderboard", "serve", "--port", "0", **{**whole, missing: ""}, code=2)
        says(done.stderr, "CIR_LEADERBOARD_ACCOUNTS=oauth", missing, "Fix: in a Space, write  hf_oauth: true")
