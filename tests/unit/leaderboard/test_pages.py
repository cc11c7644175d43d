"""The pages' HTML from hostile words, without a browser."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from cir_datasets import registry
from leaderboard.pages import submit_page
from leaderboard.pages.about_page import about_text
from leaderboard.pages.markup import element, link_out, text
from leaderboard.pages.status_page import status_html
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


def test_the_about_page_shows_a_rank_file_of_the_version_that_its_benchmark_has() -> None:
    shown = re.search(r'"benchmark": "(.+?)", "benchmark_version": (\d+)', about_text(2**20))
    assert shown is not None
    assert int(shown[2]) == registry.spec(shown[1]).card.version


def test_the_status_page_warns_where_nobody_judges_and_where_the_disk_is_full() -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    worker = {"version": EVIL, "seen_at": now - timedelta(seconds=3)}
    health: dict[str, Any] = {
        "version": "1.0",
        "boards": 11,
        "wrong_boards": [],
        "max_upload_bytes": 2**26,
        "waiting": 3,
        "oldest_waiting": now - timedelta(minutes=5),
        "last_scored": None,
        "workers": [worker],
        "free_bytes": 2**40,
    }
    well = status_html(health, now)
    assert "All is well" in well
    assert "3, the oldest for 5 minutes" in well
    assert "last sign of life 3 seconds ago" in well
    assert not TAGS.search(well)
    worker["seen_at"] = now - timedelta(minutes=2)
    ill = status_html({**health, "free_bytes": 2**20}, now)
    assert "All is well" not in ill
    assert "No worker shows itself" in ill
    assert "nearly full" in ill


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
