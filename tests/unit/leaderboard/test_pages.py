"""The pages' HTML from hostile words, without a browser."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from starlette.requests import Request

from leaderboard.pages import submit_page
from leaderboard.pages.markup import element, link_out, text
from leaderboard.server import Server
from leaderboard.settings import Settings

EVIL = "\"'><script>alert(1)</script><a href=javascript:alert(2)>x</a>"
TAGS = re.compile(r"<(script|img|svg|iframe)|javascript:[^&]*['\"]|\son\w+=", re.IGNORECASE)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "http://example.org",
        "//example.org",
        "data:text/html,x",
        "https://example.org/\"onclick='x'",
        "https://exa mple.org",
        "HTTPS://example.org\nx",
        None,
        7,
    ],
)
def test_only_https_becomes_a_link(url: object) -> None:
    assert link_out(url, "paper") == ""


def test_an_https_address_becomes_a_link_that_gives_nothing_away() -> None:
    shown = link_out("https://example.org/a?b=1&c=2", EVIL)
    assert 'href="https://example.org/a?b=1&amp;c=2"' in shown
    assert "noopener noreferrer" in shown
    assert "<script" not in shown


def test_attributes_are_escaped() -> None:
    assert element("i", text("x"), title=EVIL).count(">") == 2


def test_the_submit_page_does_not_say_where_the_files_lie(tmp_path: Path) -> None:
    server = Server.open(Settings(tmp_path / "home"))
    shutil.rmtree(tmp_path / "home/files/incoming", ignore_errors=True)
    (tmp_path / "home/files/incoming").write_bytes(b"in the way")
    (tmp_path / "run.json").write_bytes(b"{}")
    request = Request({"type": "http", "headers": [], "query_string": b""})
    said, address = submit_page.checked(server, request, "shapes/val", str(tmp_path / "run.json"))
    server.close()
    assert "files-unavailable" in said
    assert str(tmp_path) not in said
    assert address == ""
