"""Signing in over HTTP, at a provider that is one, and signing out: whatever happens there is a page."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import leaderboard_world as world
import plain_http
import pytest
from openid_server import PEOPLE, Provider, gone_to_the_provider, providing, signed_in, space_of

from leaderboard.identity.signed_in import Login

pytest.importorskip("authlib", reason="authlib is not installed: it is in the extra leaderboard")


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with providing() as found:
        yield found


@pytest.fixture(scope="module")
def server(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with world.serving_here(tmp_path_factory.mktemp("space") / "home", **space_of(provider)) as running:
        yield running


def named(server: Any, headers: dict[str, str]) -> str:
    """As whom the page Submit greets a browser."""
    page = server.get("/submit", headers=headers).text
    return page.partition("Signed in as ")[2].partition(" ·")[0]


def is_page(answer: Any, status: int) -> bool:
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    return "Not signed in" in answer.text and "Fix: " not in answer.text


def test_a_provider_that_is_down_is_a_page_and_signs_in_when_it_is_back(
    server: Any, provider: Provider
) -> None:
    provider.is_down = True
    answer, _ = gone_to_the_provider(server.url, provider, "ada")
    provider.is_down = False
    assert is_page(answer, 503)
    assert "Maintenance" not in answer.text
    began = plain_http.get(f"{server.url}/login/huggingface")
    cookie = {"Cookie": began.headers["set-cookie"].partition(";")[0]}
    back = plain_http.get(began.headers["location"]).headers["location"]
    provider.is_down = True  # between the two ways
    answer = plain_http.get(back, headers=cookie)
    provider.is_down = False
    assert is_page(answer, 503)
    assert named(server, signed_in(server.url, provider, "ada")) == "ada"


def test_who_cancels_reads_so(server: Any, provider: Provider) -> None:
    answer, cookie = gone_to_the_provider(server.url, provider, "")
    assert is_page(answer, 403)
    assert named(server, {"Cookie": cookie}) == ""


@pytest.mark.parametrize(
    "query",
    [
        "",
        "code=a",
        "state=a",
        "code=a&state=b",
        "code=%00&state=%00",
        "error=%0d<b>&error_description=<b>",
    ],
)
def test_odd_parameters_are_a_page(server: Any, query: str) -> None:
    answer = plain_http.get(f"{server.url}/login/callback?_nb_redirects=x&{query}")
    assert is_page(answer, 400)
    assert "<b>" not in answer.text


def test_a_code_that_was_made_up_is_a_page(server: Any, provider: Provider) -> None:
    began = plain_http.get(f"{server.url}/login/huggingface?_target_url=//evil.example&_nb_redirects=x")
    state = began.headers["location"].partition("state=")[2].partition("&")[0]
    cookie = {"Cookie": began.headers["set-cookie"].partition(";")[0]}
    assert is_page(plain_http.get(f"{server.url}/login/callback?code=a&state={state}", headers=cookie), 400)


def test_a_copied_cookie_signs_nobody_in_after_signing_out(server: Any, provider: Provider) -> None:
    headers = signed_in(server.url, provider, "bob")
    assert named(server, headers) == "bob"
    again = signed_in(server.url, provider, "bob")
    elsewhere = {**headers, "Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert plain_http.post(f"{server.url}/logout", headers=elsewhere).status_code == 403
    assert plain_http.get(f"{server.url}/logout", headers=headers).status_code == 404
    assert named(server, headers) == "bob"
    out = plain_http.post(f"{server.url}/logout", headers=headers)
    assert (out.status_code, out.headers["location"]) == (303, "submit")
    assert named(server, headers) == ""
    assert named(server, again) == "bob"  # in another browser
    refused = plain_http.post(f"{server.url}/api/submissions", content=b"{}", headers=headers)
    assert refused.json()["error"]["code"] == "needs-account"
    assert plain_http.post(f"{server.url}/logout").status_code == 303


def test_nothing_of_the_provider_is_in_the_cookie_or_the_database(server: Any, provider: Provider) -> None:
    cookie = signed_in(server.url, provider, "cy")["Cookie"].partition("=")[2]
    held = json.loads(base64.b64decode(cookie.partition(".")[0] + "=="))
    assert list(held) == ["login"]
    content = b"".join(path.read_bytes() for path in Path(server.home).glob("leaderboard.sqlite*"))
    assert PEOPLE["cy"]["sub"].encode() in content
    for secret in (*provider.tokens, held["login"]):
        assert secret.encode() not in content


def test_a_login_ends_with_the_provider_s(server: Any, provider: Provider) -> None:
    provider.lifetime = -1
    late = signed_in(server.url, provider, "bob")
    provider.lifetime = 3600
    assert named(server, late) == ""


def test_the_id_of_the_account_owns_and_organisations_are_teams() -> None:
    orgs = [{"sub": "0a01", "roleInOrg": "admin"}, {"sub": "0a02", "roleInOrg": "read"}, {"sub": "0a03"}, {}]
    caller = Login.read({"userinfo": {"sub": "5e01", "orgs": orgs}, "expires_at": 1}).caller
    assert (caller.owner, caller.role, caller.teams) == ("hf:5e01", "user", ("hf:0a01", "hf:0a03"))
    for nobody in ({}, {"userinfo": None}, {"userinfo": {"name": "Ada"}}):
        with pytest.raises(ValueError, match="names no account"):
            Login.read(nobody)
