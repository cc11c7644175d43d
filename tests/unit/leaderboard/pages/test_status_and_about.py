"""The pages about the server: its state and that of each board, and the text about the boards."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from read_pages import opened

from cir_datasets import registry
from leaderboard import boards
from leaderboard.pages.status_page import lines, problems
from leaderboard.server import Server
from leaderboard.store.schema import workers

EVIL = '"><script>alert(1)</script>'
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def health(**parts: Any) -> dict[str, Any]:
    well: dict[str, Any] = {
        "version": "1.0",
        "boards": 11,
        "wrong_boards": [],
        "lost_files": [],
        "preparing": [],
        "max_upload_bytes": 2**26,
        "waiting": 3,
        "oldest_waiting": NOW - timedelta(minutes=5),
        "last_scored": None,
        "workers": [{"version": EVIL, "seen_at": NOW - timedelta(seconds=3), "alive": True}],
        "free_bytes": 2**40,
    }
    return well | parts


def test_queue_workers_and_versions_are_listed() -> None:
    said = {name: " ".join(values) for name, values in lines(health(), NOW)}
    assert said["Submissions that wait"] == "3, the oldest for 5 minutes"
    assert said["Workers"] == f"version {EVIL}, last sign of life 3 seconds ago"
    assert said["Last file scored"] == "none yet"
    assert said["Largest file"] == "64 MB"
    assert problems(health()) == []


def test_it_warns_where_nobody_judges_where_the_disk_is_full_and_of_wrong_boards() -> None:
    late = [{"version": "1.0", "seen_at": NOW - timedelta(minutes=2), "alive": False}]
    said = problems(health(workers=late, free_bytes=2**20, wrong_boards=["own.yaml"]))
    assert len(said) == 3
    assert "No worker is running" in said[0]
    assert "nearly full" in said[1]
    assert "own.yaml is wrong" in said[2]
    listed = dict(lines(health(workers=late), NOW))["Workers"]
    assert listed == ["gone: version 1.0, last sign of life 2 minutes ago"]


@pytest.mark.parametrize(("seconds", "alive"), [(-3, True), (-60, False), (365 * 86_400, False)])
def test_workers_that_are_gone_are_marked_whatever_their_clock_said(
    server: Server, seconds: int, alive: bool
) -> None:
    seen_at = datetime.now(UTC) + timedelta(seconds=seconds)
    with server.store.database.write() as connection:
        connection.execute(workers.insert().values(id="w", beat=7, seen_at=seen_at, about={"version": "1"}))
    assert server.health()["workers"] == [{"version": "1", "seen_at": seen_at, "alive": alive}]


def test_every_board_is_listed_with_what_it_lacks(server: Server) -> None:
    server.store.pause("shapes/val", f"we move {EVIL}")
    page, html = opened(server, "status")
    assert page.status == 200
    listed = re.findall(r'<th scope="row"><a href="\./b/([^"]+)".*?<span class="badge[^>]*>([^<]+)<', html)
    assert sorted(name for name, _ in listed) == sorted(one.id for one in boards.boards())
    states = [state for _, state in listed]
    assert states == sorted(states, key=lambda state: state == "open"), "what is not open stands first"
    assert {"open", "paused", "no data"} == set(states)
    said = unescape(html)
    assert f"We move {EVIL}." in said
    assert "The publisher's file data/cirr_val.json is not on this server." in said
    assert "Why files for it are not judged" in said
    assert "<script>alert" not in html
    assert 'href="./status"' in html
    assert "http-equiv" not in html, "it is looked at again by hand"


def test_a_database_that_does_not_answer_is_said_without_its_words(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: Server) -> dict[str, Any]:
        raise OSError("/secret/place")

    monkeypatch.setattr(Server, "health", broken)
    page, html = opened(server, "status")
    assert page.status == 503
    assert "does not answer" in html
    assert "/secret/place" not in html


def test_the_about_page_is_html_and_shows_a_rank_file_of_the_version_that_its_benchmark_has(
    server: Server,
) -> None:
    page, html = opened(server, "about")
    assert (page.status, html.count("<h1>")) == (200, 1)
    for heading in ("Rank files", "What happens to a file", "What the numbers mean"):
        assert f"<h2>{heading}</h2>" in html
    assert '<pre><code class="language-json">' in html
    shown = re.search(r'"benchmark": "(.+?)", "benchmark_version": (\d+)', unescape(html))
    assert int(shown[2]) == registry.spec(shown[1]).card.version
