"""What the submit page says of a file before and after it is sent."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from leaderboard_world import opened_app
from leaderboard_world.entries import shipped

EVIL = "<script>alert(1)</script>"
BY_SCRIPT = {"X-Requested-With": "XMLHttpRequest"}
AS_PAGE = {"Accept": "text/html"}


@pytest.mark.parametrize(
    ("named", "chosen", "words", "is_other"),
    [
        ("shapes/val", "", "it will be checked there", False),
        ("shapes/val", "shapes/val", "it will be checked there", False),
        ("shapes/val", "shapes/multiturn_val", "you chose Shapes, multi-turn", True),
        (None, "shapes/val", "as you chose", False),
        (None, "", "in the list below", False),
        (EVIL, "", "&lt;script&gt;", False),
    ],
    ids=["the named", "the same", "another", "chosen alone", "none", "markup"],
)
def test_the_board_is_said_before_the_file_is_sent(
    tmp_path: Path, named: str | None, chosen: str, words: str, is_other: bool
) -> None:
    head = json.dumps({"benchmark": named} if named else {"0": [1]})
    with opened_app(tmp_path) as (client, _):
        said = client.post("/submit/look", params={"board": chosen, "name": "a.json"}, content=head).text
    assert words in said
    assert EVIL not in said
    assert ('id="as-named"' in said) is is_other


def test_a_sender_whom_the_board_refuses_hears_it_before_the_check(tmp_path: Path) -> None:
    with opened_app(tmp_path, accounts="tokens", a_day=3) as (client, _):
        said = client.post("/submit/look", content=b'{"benchmark": "shapes/val"}').text
    assert "This server takes files from those who have a token." in said
    assert "it will be checked there" not in said


def test_it_does_not_say_where_the_files_lie(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "home/files/incoming", ignore_errors=True)
    with opened_app(tmp_path) as (client, _):
        shutil.rmtree(tmp_path / "home/files/incoming", ignore_errors=True)
        (tmp_path / "home/files/incoming").write_bytes(b"in the way")
        said = client.post("/submit?board=shapes/val", files={"file": ("run.json", b"{}")}, headers=AS_PAGE)
    assert said.status_code == 503
    assert "<code>files-unavailable</code>" in said.text
    assert str(tmp_path) not in said.text


@pytest.mark.parametrize("accounts", ["local", "tokens"])
def test_the_script_is_told_the_page_and_a_plain_form_is_sent_there(tmp_path: Path, accounts: str) -> None:
    files = {"file": ("ours.json", b'{"benchmark": "shapes/val"}')}
    with opened_app(tmp_path, accounts=accounts) as (client, server):
        taken = client.post("/submit", files=files, headers=BY_SCRIPT)
        address, _, key = taken.json()["page"].partition("#")
        one = server.store.submission(address.removeprefix("./s/"))
        plain = client.post("/submit", files=files, follow_redirects=False)
    assert taken.status_code == 201
    assert (one.file_name, one.form, one.publish) == ("ours.json", {"name": "ours"}, False)
    # A private link opens by its script alone: without one such a server refuses.
    assert bool(key) is (accounts == "tokens")
    assert plain.status_code == (403 if key else 303)
    assert key or plain.headers["location"] == f"{address}?again"


def test_a_file_that_is_sent_again_is_answered_with_the_entry_that_it_is(tmp_path: Path) -> None:
    files = {"file": ("ours.json", shipped("random"))}
    with opened_app(tmp_path) as (client, server):
        first = client.post("/submit", files=files, follow_redirects=False).headers["location"]
        server.worker.process(server.store.unfinished()[0])
        private = client.post("/submit", files=files).text
        client.post("/submit", files=files, data={"publish": "yes"})
        published = client.post("/submit", files=files).text
    one = first.removeprefix("./s/")
    for said in (private, published):
        assert f"it is submission {one}, " in said
    assert 'id="act-publish"' in private
    assert "It is on that board already" in published
