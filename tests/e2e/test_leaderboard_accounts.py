"""A leaderboard with accounts: who may read, change and publish what, over HTTP."""

from __future__ import annotations

import csv
import re
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import leaderboard_world as world
import plain_http
import pytest

from cir_metrics.errors import CallError
from leaderboard.identity import Tokens
from leaderboard.intake.life import ACTS_A_DAY
from leaderboard.settings import Settings
from leaderboard.store import Store
from leaderboard.web import options

Owners = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def server(server_with_accounts: Any) -> Any:
    return server_with_accounts


def send(server: Any, content: bytes, headers: dict[str, str], **query: str) -> dict[str, Any]:
    answer = plain_http.post(
        f"{server.url}/api/submissions",
        params={"board": "shapes/val", **query},
        content=content,
        headers=headers,
        timeout=300,
    )
    assert answer.status_code in (200, 202), answer.text
    return answer.json()


def finished(server: Any, submission_id: str, headers: dict[str, str]) -> dict[str, Any]:
    for _ in range(3000):
        found: dict[str, Any] = server.get(f"/api/submissions/{submission_id}", headers=headers).json()
        if found["finished"]:
            return found
        time.sleep(0.1)
    raise AssertionError(found)


def entered(server: Any, headers: dict[str, str], seed: int, name: str, **query: str) -> dict[str, Any]:
    """What was answered to a rank file, once it is judged."""
    sent = send(server, world.as_bytes(world.rank_file(seed, name)), headers, **query)
    finished(server, sent["id"], headers)
    return sent


def secret(headers: dict[str, str]) -> str:
    return headers["Authorization"].removeprefix("Bearer ")


def act(server: Any, submission_id: str, action: str, headers: dict[str, str], **said: Any) -> httpx.Response:
    return plain_http.post(
        f"{server.url}/api/submissions/{submission_id}/{action}", json=said, headers=headers, timeout=300
    )


def named(server: Any) -> list[str]:
    return [row["method"]["name"] for row in server.rows()]


def test_check_first_then_publish(server: Any, owners: Owners) -> None:
    ada = owners["ada"]
    sent = send(server, world.as_bytes(world.rank_file(1, "Of Ada")), ada)
    checked = finished(server, sent["id"], ada)
    assert checked["state"] == "private"
    assert checked["scores"]["metrics"]
    assert "Of Ada" not in named(server)
    assert act(server, sent["id"], "publish", ada).json()["state"] == "published"
    assert "Of Ada" in named(server)


def test_a_published_entry_is_changed_by_its_owner_alone(server: Any, owners: Owners) -> None:
    ada, bob = owners["ada"], owners["bob"]
    sent = entered(server, ada, 3, "Mine", publish="yes")
    for headers in ({}, bob):
        refused = act(server, sent["id"], "correct", headers, method={"name": "Stolen"})
        assert refused.status_code == 403
        assert refused.json()["error"]["code"] == "not-yours"
    changed = act(
        server, sent["id"], "correct", ada, method={"name": "Mine, renamed", "backbone": "ViT-L/14"}
    ).json()
    assert changed["method"]["name"] == "Mine, renamed"
    assert "Mine, renamed" in named(server)
    assert act(server, sent["id"], "hide", ada, reason="x").status_code == 403
    assert act(server, sent["id"], "withdraw", ada).json()["state"] == "withdrawn"
    assert "Mine, renamed" not in named(server)
    bad = act(server, sent["id"], "correct", ada, method={"code": "javascript:alert(1)"})
    assert bad.status_code == 422


def test_a_name_belongs_to_its_owner(server: Any, owners: Owners) -> None:
    ada, bob = owners["ada"], owners["bob"]
    first = send(server, world.as_bytes(world.rank_file(4, "One Name")), ada, publish="yes")
    finished(server, first["id"], ada)
    second = send(server, world.as_bytes(world.rank_file(5, "ONE  name")), bob, publish="yes")
    kept = finished(server, second["id"], bob)
    assert kept["state"] == "private"
    assert kept["kept_private"]["code"] == "name-taken"
    refused = act(server, second["id"], "publish", bob)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "name-taken")
    assert act(server, second["id"], "correct", bob, method={"name": "Another"}).status_code == 200
    assert act(server, second["id"], "publish", bob).json()["state"] == "published"


def test_the_same_bytes_from_another_owner_are_an_entry_of_their_own(server: Any, owners: Owners) -> None:
    content = world.as_bytes(world.rank_file(6, "Shared file"))
    ada, bob = owners["ada"], owners["bob"]
    first = send(server, content, ada, publish="yes")
    finished(server, first["id"], ada)
    second = send(server, content, bob)
    assert second["id"] != first["id"]
    assert finished(server, second["id"], bob)["equals"] == [first["id"]]
    again = send(server, content, ada, publish="yes")
    assert (again["id"], again["new"]) == (first["id"], False)
    assert "correct" in again["unchanged"]


def test_without_an_account_a_key_is_shown_once(server: Any) -> None:
    content = world.as_bytes(world.rank_file(7, "Nobody's"))
    sent = send(server, content, {}, publish="yes")
    key = {"X-Edit-Key": sent["edit_key"]}
    done = finished(server, sent["id"], {})
    assert done["state"] == "published"
    assert sent["edit_key"] not in str(done)
    assert act(server, sent["id"], "unpublish", {"X-Edit-Key": "wrong"}).status_code == 403
    assert act(server, sent["id"], "unpublish", key).json()["state"] == "private"
    assert server.get(f"/api/submissions/{sent['id']}").status_code == 404
    assert server.get(f"/api/submissions/{sent['id']}", headers=key).status_code == 200
    other = send(server, content, {})
    assert other["id"] != sent["id"]


def test_the_plain_form_takes_nothing_whose_private_link_a_browser_without_scripts_cannot_open(
    server: Any,
) -> None:
    files = {"file": ("run.json", world.as_bytes(world.rank_file(27, "By the plain form")))}
    page = {"Accept": "text/html"}
    refused = plain_http.post(f"{server.url}/submit", files=files, headers=page, timeout=60)
    assert refused.status_code == 403
    assert refused.headers["content-type"].startswith("text/html")
    assert "that takes JavaScript" in refused.text
    assert "<code>cir submit</code>" in refused.text
    shown = plain_http.get(f"{server.url}/submit", timeout=60).text
    assert 'class="panel with-script"' in shown
    assert "private link to a submission needs JavaScript" in shown
    strange = plain_http.post(f"{server.url}/submit", files=files, headers={"Origin": "http://evil.example"})
    assert (strange.status_code, strange.json()["error"]["code"]) == (403, "cross-origin")


def test_organisers_hide_with_a_reason_and_restore(server: Any, owners: Owners) -> None:
    ada, org = owners["ada"], owners["org"]
    sent = entered(server, ada, 8, "Doubtful", publish="yes")
    assert act(server, sent["id"], "hide", org).json()["error"]["code"] == "missing-reason"
    assert act(server, sent["id"], "hide", org, reason="under review").json()["state"] == "hidden"
    assert "Doubtful" not in named(server)
    assert act(server, sent["id"], "publish", ada).status_code == 409
    assert act(server, sent["id"], "restore", org).json()["state"] == "published"
    assert act(server, sent["id"], "verify", org).json()["verified"] is True
    assert act(server, sent["id"], "flag", org, reason="late").json()["flag"] == "late"
    erased = act(server, sent["id"], "erase", org).json()
    assert erased["submitter"] == "(erased)"
    kinds = [event["kind"] for event in erased["events"]]
    assert kinds[-5:] == ["hidden", "restored", "verified", "flagged", "erased"]


def test_verified_is_of_the_words_that_were_verified(server: Any, owners: Owners) -> None:
    ada, org = owners["ada"], owners["org"]
    sent = entered(server, ada, 41, "Verified", publish="yes")
    said: list[dict[str, Any]] = [
        {"method": {"name": "Verified, renamed"}},
        {"submitter": "Somebody Else"},
        {"method": {"code": "https://example.org/code"}},
        {"method": {"zero_shot": True}},
        {"method": {"trained_on": ["cc3m"]}, "submitter": "Ada"},
    ]
    for words in said:
        assert act(server, sent["id"], "verify", org).json()["verified"] is True
        assert (
            act(server, sent["id"], "correct", ada, method={"notes": str(words)}).json()["verified"] is True
        )
        changed = act(server, sent["id"], "correct", ada, **words).json()
        assert changed["verified"] is False, words
        assert [event["kind"] for event in changed["events"]][-2:] == ["corrected", "unverified"]
        row = next(row for row in server.rows() if row["submission"] == sent["id"])
        assert row["verified"] is False
        table = csv.DictReader(server.get("/api/v1/boards/shapes/val?format=csv").text.splitlines())
        line = next(row for row in table if row["submission"] == sent["id"])
        assert line["verified"].lower() == "false"


def test_organisers_take_back_what_they_said(server: Any, owners: Owners) -> None:
    ada, org = owners["ada"], owners["org"]
    sent = entered(server, ada, 42, "Taken back", publish="yes")
    act(server, sent["id"], "verify", org)
    act(server, sent["id"], "flag", org, reason="looks odd")
    for action in ("unverify", "unflag"):
        assert act(server, sent["id"], action, ada).status_code == 403
    assert act(server, sent["id"], "unverify", org).json()["verified"] is False
    assert act(server, sent["id"], "unflag", org, reason="it was not").json()["flag"] is None
    row = next(row for row in server.rows() if row["submission"] == sent["id"])
    assert (row["verified"], row["flag"]) == (False, None)


@pytest.mark.slow
def test_what_organisers_have_hidden_stays_off_the_board(server: Any, owners: Owners) -> None:
    ada, bob, org = (owners[name] for name in ("ada", "bob", "org"))
    content = world.as_bytes(world.rank_file(43, "Hidden once"))
    first = finished(server, send(server, content, ada, publish="yes")["id"], ada)
    act(server, first["id"], "hide", org, reason="under review")
    same = send(server, content, ada, publish="yes")
    assert (same["id"], same["new"], same["state"]) == (first["id"], False, "hidden")
    assert "under review" in same["unchanged"]
    assert "on that board already" not in same["unchanged"]
    other = finished(server, send(server, content + b"\n", ada, publish="yes")["id"], ada)
    assert act(server, first["id"], "withdraw", ada).json()["state"] == "withdrawn"
    again = finished(server, send(server, content, ada, publish="yes")["id"], ada)
    for found in (other, again):
        assert (found["state"], found["same_as"]) == ("superseded", first["id"])
        assert "organisers have hidden" in found["message"]
        assert act(server, found["id"], "publish", ada).status_code == 409
    assert "Hidden once" not in named(server)
    # Another owner's are their own.
    assert finished(server, send(server, content, bob)["id"], bob)["state"] == "private"
    assert act(server, first["id"], "restore", org).json()["state"] == "published"
    assert named(server).count("Hidden once") == 1


def test_an_owner_does_not_take_back_what_the_file_says(server: Any, owners: Owners) -> None:
    ada, org = owners["ada"], owners["org"]
    said = {"oracle": "target_captions", "zero_shot": False, "trained_on": ["cc3m"]}
    content = world.as_bytes(world.rank_file(44, "Upper bound", **said))
    sent = finished(server, send(server, content, ada, publish="yes", backbone="vit-b/32")["id"], ada)
    for words in (
        {"oracle": "none"},
        {"oracle": ""},
        {"zero_shot": True},
        {"zero_shot": None},
        {"trained_on": []},
    ):
        refused = act(server, sent["id"], "correct", ada, method=words)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "against-file"), words
    assert next(row for row in server.rows() if row["submission"] == sent["id"])["is_oracle"] is True
    words = {"name": "Upper bound 2", "trained_on": ["cc3m", "coco"], "backbone": "vit-l/14"}
    changed = act(server, sent["id"], "correct", ada, method=words).json()
    event = changed["events"][-1]
    assert event["fields"] == ["backbone", "name", "trained_on"]
    assert event["name"] == {"old": "Upper bound", "new": "Upper bound 2"}
    assert act(server, sent["id"], "correct", org, method={"oracle": "none"}).status_code == 200
    assert server.get(f"/api/submissions/{sent['id']}").json()["events"][-1]["fields"] == ["oracle"]
    # What an organiser has corrected does not stand in the way of other words.
    assert act(server, sent["id"], "correct", ada, method={"notes": "a note"}).status_code == 200


def test_an_unknown_or_revoked_token_is_refused(server: Any, settings: Settings, owners: Owners) -> None:
    for secret in ("cir_deadbeef_x", "nonsense"):
        answer = server.get("/api/submissions/x", headers={"Authorization": f"Bearer {secret}"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "bad-token")
    store = Store(settings.database_url)
    kept = Tokens(store)
    kept.revoke(next(one.id for one in kept.all() if one.owner == "token:cy"))
    store.close()
    assert server.get("/api/submissions/x", headers=owners["cy"]).status_code == 401


def test_no_secret_is_kept_or_logged(server: Any, settings: Settings, owners: Owners) -> None:
    written = b"".join(path.read_bytes() for path in settings.home.rglob("*") if path.is_file())
    for kept in map(secret, owners.values()):
        assert kept.encode() not in written
        assert kept not in server.log.read_text()


@pytest.mark.slow
def test_quotas_count_what_was_scored(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    store = Store(Settings(home).database_url)
    ada = {"Authorization": f"Bearer {Tokens(store).create('ada')}"}
    store.close()
    quota = {"CIR_LEADERBOARD_ACCOUNTS": "tokens", "CIR_LEADERBOARD_QUOTA_DAY": "2"}
    with world.serving_here(home, **quota) as running:
        broken = send(running, b"[1]", ada)
        finished(running, broken["id"], ada)
        first = send(running, world.as_bytes(world.rank_file(1)), ada)
        assert first["quota"]["left_today"] == 1
        finished(running, first["id"], ada)
        send(running, world.as_bytes(world.rank_file(2)), ada)
    with world.serving_here(home, **quota) as running:
        query = {"board": "shapes/val"}
        url = f"{running.url}/api/submissions"
        answer = plain_http.post(url, params=query, content=b"{}", headers=ada, timeout=300)
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "quota")
        assert "UTC" in answer.json()["error"]["fix"]
        assert answer.json()["error"]["resets_at"] == first["quota"]["resets_at"]
        anonymous = plain_http.post(url, params=query, content=b"{}", timeout=300)
        assert (anonymous.status_code, anonymous.json()["error"]["code"]) == (401, "needs-token")


def test_a_leaderboard_of_one_person_does_not_listen_for_others(tmp_path: Path) -> None:
    done = world.cir(
        "leaderboard", "serve", "--host", "0.0.0.0", "--port", "0", "--home", str(tmp_path / "home"), code=2
    )
    assert "CIR_LEADERBOARD_ACCOUNTS=tokens" in done.stderr


def test_a_leaderboard_for_others_stands_behind_a_proxy_or_is_a_space(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(CallError, match="--behind-proxy"):
        options.check_place("0.0.0.0", "tokens", ())
    with pytest.raises(CallError, match="not an address"):
        options.read(proxies=["nginx"])
    options.check_place("0.0.0.0", "tokens", options.read(proxies=["172.16.0.1/12"]).proxies)
    options.check_place("::1", "local", ())
    monkeypatch.setenv("SPACE_ID", "me/board")
    options.check_place("0.0.0.0", "oauth", ())


def test_the_commands_of_organisers(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "home"))
    made = world.cir("leaderboard", "token", "create", "ada", *home)
    assert made.stdout.startswith("cir_")
    listed = world.cir("leaderboard", "token", "list", *home).stdout
    assert "token:ada" in listed
    assert made.stdout.strip() not in listed
    revoked = world.cir("leaderboard", "token", "revoke", made.stdout.split("_")[1], *home)
    assert "is refused from now on" in revoked.stdout
    path = tmp_path / "run.json"
    path.write_bytes(world.as_bytes(world.rank_file(1, "Local")))
    assert world.cir("leaderboard", "add", str(path), *home).returncode == 0
    store = Store(Settings(tmp_path / "home").database_url)
    entry = store.published("shapes/val")[0]
    store.close()
    hidden = world.cir("leaderboard", "change", entry.id, "hide", "--reason", "a test", *home)
    assert hidden.stdout == f"{entry.id}: hidden\n"
    assert "Local" not in world.cir("leaderboard", "show", "shapes/val", *home).stdout
    assert world.cir("leaderboard", "change", entry.id, "explode", *home).returncode == 2
    paused = world.cir("leaderboard", "pause", "shapes/val", "--reason", "new data", *home)
    assert paused.stdout == "shapes/val: takes no submissions\n"
    refused = world.cir("leaderboard", "add", str(path), "--board", "shapes/val", *home)
    assert "new data" in refused.stderr


def test_a_login_for_a_proxy_is_not_a_token(server: Any) -> None:
    answer = server.get("/api/v1/boards", headers={"Authorization": "Basic bWU6c2VjcmV0"})
    assert answer.status_code == 200
    answer = server.get("/api/submissions/x", headers={"Authorization": "Basic bWU6c2VjcmV0"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown-submission")


def test_rankings_that_were_never_public_stay_so(server: Any, owners: Owners) -> None:
    ada, content = owners["ada"], world.as_bytes(world.rank_file(32, "Written twice"))
    finished(server, send(server, content, ada)["id"], ada)
    second = finished(server, send(server, content + b"\n", ada)["id"], ada)
    assert second["state"] == "superseded"
    assert "has the same rankings" in second["message"]
    assert server.get(f"/api/submissions/{second['id']}").status_code == 404


def test_submit_without_an_account_shows_the_key_and_why_an_entry_is_not_listed(
    server: Any, owners: Owners, tmp_path: Path
) -> None:
    ada, path = owners["ada"], tmp_path / "run.json"
    taken = send(server, world.as_bytes(world.rank_file(33, "Taken name")), ada, publish="yes")
    finished(server, taken["id"], ada)
    path.write_bytes(world.as_bytes(world.rank_file(34, "taken NAME")))
    done = world.cir("submit", str(path), "--to", server.url, "--publish", code=1)
    assert "X-Edit-Key: " in done.stderr
    assert "belongs to another owner's entry" in done.stderr
    assert "choose another name for the method, then publish it" in done.stderr
    path.write_bytes(world.as_bytes(world.rank_file(35, "A free name")))
    sent = world.cir(
        "submit", str(path), "--to", server.url, CIR_LEADERBOARD_TOKEN=secret(owners["bob"]), code=0
    )
    assert "X-Edit-Key" not in sent.stderr
    assert "send the file again with --publish" in sent.stderr
    assert "/s/" not in sent.stdout  # a browser has no token
    path.write_bytes(world.as_bytes(world.rank_file(36, "Behind its link")))
    alone = world.cir("submit", str(path), "--to", server.url)
    link = re.search(rf"{server.url}/s/(\w+)#(edit_\S+)$", alone.stdout, re.MULTILINE)
    assert link is not None, alone.stdout
    assert "send the file again" not in alone.stderr  # its sender would not be known again
    assert act(server, link[1], "publish", {"X-Edit-Key": link[2]}).json()["state"] == "published"


@pytest.mark.slow
def test_an_owner_cannot_grow_the_log_without_end(server: Any, owners: Owners) -> None:
    sent = send(server, world.as_bytes(world.rank_file(33, "In a loop")), {})
    link = {"X-Edit-Key": sent["edit_key"]}
    finished(server, sent["id"], link)
    codes = [
        act(server, sent["id"], ("publish", "unpublish")[number % 2], link).status_code
        for number in range(ACTS_A_DAY)
    ]
    assert codes == [200] * ACTS_A_DAY
    before = finished(server, sent["id"], link)["events"]
    for action, said in (("publish", {}), ("correct", {"method": {"notes": "once more"}})):
        refused = act(server, sent["id"], action, link, **said)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (429, "too-many")
        resets_at = datetime.fromisoformat(error["resets_at"])
        assert (resets_at.hour, resets_at.minute, resets_at.utcoffset()) == (0, 0, timedelta(0))
        assert f"{resets_at:%Y-%m-%d} 00:00 UTC" in error["fix"]
    assert finished(server, sent["id"], link)["events"] == before
    assert act(server, sent["id"], "publish", owners["org"]).status_code == 200
    assert act(server, sent["id"], "unpublish", link).status_code == 429
    assert act(server, sent["id"], "withdraw", link).json()["state"] == "withdrawn"


def test_organisers_list_all_submissions_and_nobody_else_does(
    server: Any, owners: Owners, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_LEADERBOARD_DATABASE", server.database)
    sent = send(server, world.as_bytes(world.rank_file(77, "Listed")), owners["ada"])
    finished(server, sent["id"], owners["ada"])
    path = "/api/v1/submissions?board=shapes/val"
    for headers in ({}, owners["bob"]):
        assert server.get(path, headers=headers).status_code == 403
    listed = server.get(path, headers=owners["org"]).json()["submissions"]
    (mine,) = [one for one in listed if one["id"] == sent["id"]]
    assert mine["scores"]["metrics"]
    table = world.cir("leaderboard", "submissions", "shapes/val", "--home", str(server.home)).stdout
    (line,) = [line for line in table.splitlines() if line.startswith(sent["id"])]
    assert "token:ada" in line


def test_an_act_without_words_needs_no_body(server: Any, owners: Owners) -> None:
    ada = owners["ada"]
    sent = entered(server, ada, 78, "Bodiless")
    answer = plain_http.post(f"{server.url}/api/submissions/{sent['id']}/withdraw", headers=ada, timeout=300)
    assert (answer.status_code, answer.json()["state"]) == (200, "withdrawn")


def test_the_openapi_document_names_the_headers_of_callers(server: Any) -> None:
    document = server.get("/api/openapi.json").json()
    schemes = document["components"]["securitySchemes"]
    assert {(one["type"], one.get("scheme"), one.get("name")) for one in schemes.values()} == {
        ("http", "bearer", None),
        ("apiKey", None, "X-Edit-Key"),
    }
    assert document["paths"]["/api/v1/submissions"]["post"]["security"]
