"""What the submit page says of a file before and after it is sent."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.requests import Request

from leaderboard.pages import submit_page
from leaderboard.server import Server
from leaderboard.settings import Settings

REQUEST = Request({"type": "http", "headers": [], "query_string": b"", "client": ("127.0.0.1", 1)})
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    opened = Server.open(Settings(tmp_path / "home"))
    yield opened
    opened.close()


def test_it_does_not_say_where_the_files_lie(server: Server, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "home/files/incoming", ignore_errors=True)
    (tmp_path / "home/files/incoming").write_bytes(b"in the way")
    (tmp_path / "run.json").write_bytes(b"{}")
    said, address = submit_page.checked(server, REQUEST, "shapes/val", str(tmp_path / "run.json"))
    assert "files-unavailable" in said
    assert str(tmp_path) not in said
    assert address == ""


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
    server: Server, tmp_path: Path, named: str | None, chosen: str, words: str, is_other: bool
) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"benchmark": named} if named else {"0": [1]}))
    said, other = submit_page.named_html(server, REQUEST, chosen, str(file))
    assert words in said
    assert EVIL not in said
    assert other is is_other
    assert submit_page.named_html(server, REQUEST, chosen, None) == ("", False)


def test_a_sender_whom_the_board_refuses_hears_it_before_the_check(tmp_path: Path) -> None:
    server = Server.open(Settings(tmp_path / "home", accounts="tokens", a_day=3))
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"benchmark": "shapes/val"}))
    said, _ = submit_page.named_html(server, REQUEST, "", str(file))
    server.close()
    assert "This server takes files from those who have a token." in said
    assert "it will be checked there" not in said
